/** Limits of elapsed time that follow the machine: a slow or busy one gets more. */
import { referenceWork, slowness } from '../../daemon/testing/turn-budget.ts'

export type TimeLimit = { readonly ms: number; readonly text: string }

const mostBusy = 4
const runs = 50 // a quarter of a second on the reference machine

/**
 * The limit here and now, for what takes at most `ms` on an idle reference machine: call it just after what it limits. It is multiplied by
 * how much slower this machine is, and by how busy it is: how long work takes, divided by its CPU time, at most 4.
 */
export function timeLimit(ms: number): TimeLimit {
  const [slow, busy] = [slowness(), Math.min(mostBusy, busyness())]
  const limit = Math.round(ms * slow * busy)
  const because = `${ms} ms, on a machine ${slow.toFixed(1)} times as slow as the reference machine and ${busy.toFixed(1)} times as busy`
  return { ms: limit, text: `within ${limit} ms (${because})` }
}

function busyness(): number {
  const [beganMs, began] = [performance.now(), process.cpuUsage()]
  for (let run = 0; run < runs; run++) referenceWork()
  const { user, system } = process.cpuUsage(began)
  return Math.max(1, (performance.now() - beganMs) / ((user + system) / 1000))
}
