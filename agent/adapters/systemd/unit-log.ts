/** The end of the log of a unit, from systemd's journal. */
import type { Clock } from '../../../daemon/clock.ts'
import { runTool } from '../network/run-tool.ts'

export type UnitLogNeeds = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly run?: (file: string, args: readonly string[]) => Promise<{ readonly code: number; readonly stdout: string }>
}

const mostLines = 20
const mostLineLength = 2_000
const deadlineMs = 5_000
const periodMs = 30_000

/** Gives the newest lines last, as of at most 30 s ago; none where they cannot be read. Never rejects. */
export function unitLog(unit: string, { clock, run = runJournalctl }: UnitLogNeeds): () => Promise<readonly string[]> {
  let last: { readonly atMs: number; readonly lines: Promise<readonly string[]> } | undefined
  const args = [`--unit=${unit}`, `--lines=${mostLines}`, '--output=cat', '--quiet', '--no-pager']
  const read = async () => {
    try {
      const { code, stdout } = await run('journalctl', args)
      return code === 0 ? stdout.split('\n').map((line) => line.slice(0, mostLineLength)) : []
    } catch {
      return [] // without journalctl, or the journal cannot be read in time
    }
  }
  return () => {
    const nowMs = clock.monotonicMs()
    if (last === undefined || nowMs - last.atMs >= periodMs) last = { atMs: nowMs, lines: read() }
    return last.lines
  }
}

const runJournalctl = (file: string, args: readonly string[]) => runTool(file, args, undefined, deadlineMs)
