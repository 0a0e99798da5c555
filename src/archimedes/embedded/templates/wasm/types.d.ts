/** An array of numbers: typed, plain, or nested as its shape is. */
export type Numbers<T> = T | ReadonlyArray<number | bigint | boolean | Numbers<T>>;
type View = Float64Array | Float32Array | BigInt64Array | Uint8Array;

/** Many instances: arrays by path, instance after instance. */
export interface Batch {{
  readonly n: number;
  readonly inputs: Record<string, View>;
  readonly outputs: Record<string, View>;
  run(): void;
}}

/** A function of the module: `call` checks and copies; `inputs`, `run` and `outputs` do neither. */
export interface ModuleFunction<F> {{
  call: F;
  readonly inputs: Record<string, View>;
  readonly outputs: Record<string, View>;
  run(): void;
  reset(): void;
  carry(pairs: ReadonlyArray<readonly [string, string]>): void;
  batch(n: number, options?: {{ shared?: string[] }}): Batch;
}}

export interface Model {{
  readonly memory: WebAssembly.Memory;
  readonly functions: {{
{members}
  }};
{only}}}

export const layout: object;
/** Load the module: the file beside the script, one at another URL, or bytes. */
export function load(source?: string | URL | BufferSource | WebAssembly.Module): Promise<Model>;
