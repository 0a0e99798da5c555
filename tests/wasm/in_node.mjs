// node in_node.mjs FOLDER: runs the jobs of a folder (jobs.json, inputs.bin) and writes outputs.bin.
import { readFileSync, writeFileSync } from "node:fs";
import { runJobs } from "./jobs.mjs";

const folder = process.argv[2];
const jobs = JSON.parse(readFileSync(`${folder}/jobs.json`, "utf8"));
const given = readFileSync(`${folder}/inputs.bin`);
const made = await runJobs(jobs, given, (name) => readFileSync(`${folder}/${name}`));
writeFileSync(`${folder}/outputs.bin`, Buffer.concat(made));
