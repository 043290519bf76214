/**
 * Measures for how long work holds the event loop, against a limit that follows the machine: the CPU time of the longest turn, the least of
 * some runs. A machine that stands still for seconds does not change it, and one that is slow or busy raises the limit.
 */
import { openSync, readSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** Limit of one turn of the event loop, on the reference machine. */
export const budgetMs = 100

/** `act` holds the event loop in one or more turns; `prepare` brings back what it needs, and is not measured. */
export type BudgetCase = {
  readonly what: string
  readonly bytes: number
  readonly prepare?: () => Promise<unknown>
  readonly act: () => Promise<unknown>
}

/** `ms`: of the longest turn, as on the reference machine. `result`: of the last run. */
export type TurnCost = { readonly ms: number; readonly result: unknown }

/** The reference work takes this long on the reference machine: an idle x86-64 core of 2 GHz with Node.js 20. */
const referenceMs = 4.5
const mostRuns = 9

/**
 * The least of up to nine runs, as it would be on the reference machine; the first that is within `enoughMs` ends them. The speed of the
 * machine is measured beside each of the others.
 */
export async function turnCost(
  { prepare, act }: BudgetCase,
  { enoughMs = budgetMs, runs = mostRuns }: { readonly enoughMs?: number; readonly runs?: number } = {},
): Promise<TurnCost> {
  let least: TurnCost = { ms: Number.POSITIVE_INFINITY, result: undefined }
  for (let run = 0; run < runs && least.ms > enoughMs; run++) {
    await prepare?.()
    // What other work has left behind is not this one's.
    if (run > 0) collectGarbage()
    const { ms, result } = await longestTurn(act)
    least = { ms: Math.min(least.ms, ms <= enoughMs ? ms : ms / slowness()), result }
  }
  return least
}

/** Those with a turn above `mostMs`, as sentences. */
export async function turnsAboveBudget(
  cases: AsyncIterable<BudgetCase> | Iterable<BudgetCase>,
  mostMs = budgetMs,
): Promise<{ readonly count: number; readonly above: readonly string[] }> {
  const above: string[] = []
  let count = 0
  for await (const one of cases) {
    const { ms } = await turnCost(one, { enoughMs: mostMs })
    count += 1
    if (ms > mostMs) above.push(`${one.what} with ${one.bytes} bytes: ${ms.toFixed(0)} ms`)
  }
  return { count, above }
}

/** In CPU time. Work that awaits a disk or a timer lets other work pass. */
async function longestTurn(act: () => Promise<unknown>): Promise<TurnCost> {
  let [ms, isOver] = [0, false]
  let began = cpuTimes()
  const turn = () => {
    const ended = cpuTimes()
    ms = Math.max(ms, Math.min(ended.processMs - began.processMs, ended.threadMs - began.threadMs))
    began = cpuTimes()
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  began = cpuTimes()
  const result = await act()
  isOver = true
  turn()
  return { ms, result }
}

/**
 * CPU time of the process and of this thread. That of the process has the other threads of the garbage collector in it, which may run while
 * this one waits for a busy core. Linux writes that of a running thread at each of its ticks, so it is up to 10 ms late.
 */
function cpuTimes(): { readonly processMs: number; readonly threadMs: number } {
  const { user, system } = process.cpuUsage()
  const processMs = (user + system) / 1000
  if (threadSchedule === undefined) return { processMs, threadMs: processMs }
  const text = Buffer.alloc(64)
  readSync(threadSchedule, text, 0, text.length, 0)
  return { processMs, threadMs: Number.parseInt(text.toString('latin1'), 10) / 1e6 }
}

/** Begins with the nanoseconds that this thread has run. undefined: this kernel does not count them. */
const threadSchedule = opened('/proc/thread-self/schedstat')

function opened(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch {
    return undefined
  }
}

/** By how much longer than on the reference machine work takes here and now, as the least of `runs` shows; at least 1. */
export function slowness(runs = 3): number {
  const costs = Array.from({ length: runs }, () => {
    const began = process.cpuUsage()
    referenceWork()
    const { user, system } = process.cpuUsage(began)
    return (user + system) / 1000
  })
  return Math.max(1, Math.min(...costs) / referenceMs)
}

/** What requests do: text becomes values, which are copied, compared and looked up. */
export function referenceWork(): number {
  const text = JSON.stringify(Array.from({ length: 5_000 }, (_, number) => ({ name: `n${number}`, value: { number } })))
  const items = JSON.parse(text) as { readonly name: string; readonly value: { readonly number: number } }[]
  const byName = new Map(items.map((item) => [item.name, { ...item, value: { ...item.value } }]))
  return items.filter(({ name, value }) => byName.get(name)?.value.number === value.number).length
}
