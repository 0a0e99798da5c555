; Threads for the long loops of kernels (runtime/loop_threads.py).
;
; One loop at a time has the helpers: who finds them taken does the loop alone. A helper counts
; itself in before it looks whether there is a loop. A loop that has closed waits until nobody is
; counted in, so that no helper touches what is gone. A helper that is not given a CPU in time finds
; the loop closed, and nobody has waited for it. Locks are CPython's, which need no GIL.
; Where it says addresses in braces, the addresses of all words of the state follow, as %NAME.at.

; One address leads to both functions.
@state.at = internal global ptr null
@entries = internal constant [2 x ptr] [ptr @over_threads, ptr @help]

define ptr @arc_loop_entries(ptr %state) nounwind {
  store ptr %state, ptr @state.at
  ret ptr @entries
}

; Takes pieces of the loop until there are none.
define internal void @pieces(ptr %state, ptr %own) nounwind {
{addresses}
  %function = load ptr, ptr %function.at
  %frame = load ptr, ptr %frame.at
  %in = load ptr, ptr %in.at
  %out = load ptr, ptr %out.at
  %count = load i64, ptr %count.at
  %size = load i64, ptr %size.at
  br label %more
more:
  %begin = atomicrmw add ptr %next.at, i64 %size seq_cst
  %left = icmp slt i64 %begin, %count
  br i1 %left, label %piece, label %end
piece:
  %past = add i64 %begin, %size
  %whole = icmp slt i64 %past, %count
  %stop = select i1 %whole, i64 %past, i64 %count
  %status = call i32 %function(ptr %frame, ptr %in, ptr %out, i64 %begin, i64 %stop, ptr %own)
  br label %more
end:
  ret void
}

; What a helper does, forever.
define internal void @help(i64 %number, ptr %own) nounwind {
  %state = load ptr, ptr @state.at
{addresses}
  %bells = load ptr, ptr %bells.at
  %bell.at = getelementptr ptr, ptr %bells, i64 %number
  %bell = load ptr, ptr %bell.at
  %rung = load ptr, ptr %rung.at
  %mine = getelementptr i64, ptr %rung, i64 %number
  %acquire = load ptr, ptr %acquire.at
  %release = load ptr, ptr %release.at
  %finished = load ptr, ptr %finished.at
  br label %sleep
sleep:
  %woken = call i32 %acquire(ptr %bell, i32 1)
  store atomic i64 0, ptr %mine seq_cst, align 8
  %before = atomicrmw add ptr %active.at, i64 1 seq_cst
  %open = load atomic i64, ptr %open.at seq_cst, align 8
  %there = icmp ne i64 %open, 0
  br i1 %there, label %work, label %leave
work:
  call void @pieces(ptr %state, ptr %own)
  br label %leave
leave:
  %with = atomicrmw sub ptr %active.at, i64 1 seq_cst
  %last = icmp eq i64 %with, 1
  br i1 %last, label %look, label %sleep
look:
  %waiting = atomicrmw xchg ptr %waiting.at, i64 0 seq_cst
  %waits = icmp ne i64 %waiting, 0
  br i1 %waits, label %tell, label %sleep
tell:
  call void %release(ptr %finished)
  br label %sleep
}

; What a loop calls.
define internal void @over_threads(ptr %function, ptr %frame, ptr %in, ptr %out, i64 %count,
                                   i64 %grain, ptr %done) nounwind {
  %state = load ptr, ptr @state.at
{addresses}
  %paused = load atomic i64, ptr %paused.at seq_cst, align 8
  %helpers = load i64, ptr %helpers.at
  %above = add i64 %count, %grain
  %rounded = sub i64 %above, 1
  %grains = sdiv i64 %rounded, %grain
  %runs = icmp eq i64 %paused, 0
  %some = icmp sgt i64 %helpers, 0
  %long = icmp sgt i64 %grains, 1
  %allowed = and i1 %runs, %some
  %wanted = and i1 %allowed, %long
  br i1 %wanted, label %ask, label %alone
ask:
  %taken = cmpxchg ptr %busy.at, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %taken, 1
  br i1 %mine, label %begin, label %alone
begin:
  %earlier = load i64, ptr %loops.at
  %number = add i64 %earlier, 1
  store i64 %number, ptr %loops.at
  %threads = add i64 %helpers, 1
  %most = mul i64 %threads, {pieces}
  %few = icmp slt i64 %grains, %most
  %pieces = select i1 %few, i64 %grains, i64 %most
  %more = add i64 %grains, %pieces
  %less = sub i64 %more, 1
  %each = sdiv i64 %less, %pieces
  %size = mul i64 %each, %grain
  store ptr %function, ptr %function.at
  store ptr %frame, ptr %frame.at
  store ptr %in, ptr %in.at
  store ptr %out, ptr %out.at
  store i64 %count, ptr %count.at
  store i64 %size, ptr %size.at
  store atomic i64 0, ptr %next.at seq_cst, align 8
  store atomic i64 1, ptr %open.at seq_cst, align 8
  %others = sub i64 %pieces, 1
  %fewer = icmp slt i64 %others, %helpers
  %ringing = select i1 %fewer, i64 %others, i64 %helpers
  %bells = load ptr, ptr %bells.at
  %rung = load ptr, ptr %rung.at
  %acquire = load ptr, ptr %acquire.at
  %release = load ptr, ptr %release.at
  %finished = load ptr, ptr %finished.at
  br label %ring
ring:
  %k = phi i64 [0, %begin], [%following, %next.bell]
  %left = icmp slt i64 %k, %ringing
  br i1 %left, label %one, label %work
one:
  %flag = getelementptr i64, ptr %rung, i64 %k
  %old = atomicrmw xchg ptr %flag, i64 1 seq_cst
  %quiet = icmp eq i64 %old, 0
  br i1 %quiet, label %wake, label %next.bell
wake:
  %bell.at = getelementptr ptr, ptr %bells, i64 %k
  %bell = load ptr, ptr %bell.at
  call void %release(ptr %bell)
  br label %next.bell
next.bell:
  %following = add i64 %k, 1
  br label %ring
work:
  call void @pieces(ptr %state, ptr null)
  store atomic i64 0, ptr %open.at seq_cst, align 8
  br label %wait
wait:
  br label %look
look:
  %looks = phi i64 [0, %wait], [%again, %not.yet]
  %active = load atomic i64, ptr %active.at seq_cst, align 8
  %over = icmp eq i64 %active, 0
  br i1 %over, label %end, label %not.yet
not.yet:
  %again = add i64 %looks, 1
  %patient = icmp slt i64 %again, {looks}
  br i1 %patient, label %look, label %settle
settle:
  store atomic i64 1, ptr %waiting.at seq_cst, align 8
  %still = load atomic i64, ptr %active.at seq_cst, align 8
  %none = icmp eq i64 %still, 0
  br i1 %none, label %withdraw, label %rest
withdraw:
  %asked = atomicrmw xchg ptr %waiting.at, i64 0 seq_cst
  %told = icmp eq i64 %asked, 0
  br i1 %told, label %rest, label %end
rest:
  %rested = call i32 %acquire(ptr %finished, i32 1)
  br label %wait
end:
  store atomic i64 0, ptr %busy.at seq_cst, align 8
  store i32 1, ptr %done
  br label %alone
alone:
  ret void
}
