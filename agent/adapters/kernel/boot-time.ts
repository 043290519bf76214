/**
 * Measures the time from power on to the connection to the controller. The value is in a file that is written when it changes.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { aborted } from '../../../daemon/aborted.ts'
import type { Cell } from '../../../daemon/cell.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import type { Loop } from '../../../daemon/run.ts'

export type BootTimeNeeds = {
  readonly dataDirectory: string
  /** The machine was booted since the last start of the agent; otherwise this start measures no boot. */
  readonly rebooted: boolean
  readonly isConnected: () => boolean
  /** Time since power on. */
  readonly uptimeMs: () => number
  readonly clock: Clock
  readonly writes: {
    /** Duration of a boot in milliseconds; undefined until it was measured once. */
    readonly bootMs: Cell<number | undefined>
  }
}

/** A connection after this time had another cause of delay, and is not measured. */
const longestMs = 15 * 60_000
/** Boot times vary: a smaller change is not written to the card. */
const changedBy = 0.25
const lookMs = 1_000

/** Reads the last measurement. The loop measures this boot until the controller is connected. */
export async function openBootTime(needs: BootTimeNeeds): Promise<Loop> {
  const { dataDirectory, rebooted, isConnected, uptimeMs, clock, writes } = needs
  const path = join(dataDirectory, 'boot-seconds')
  writes.bootMs.set(believed(await readFile(path, 'utf8').catch(() => '')))

  const measured = async (tookMs: number) => {
    const ms = writes.bootMs.get()
    if (ms !== undefined && Math.abs(tookMs - ms) <= ms * changedBy) return
    const seconds = Math.ceil(tookMs / 1000)
    writes.bootMs.set(seconds * 1000)
    // A write error is not a failure.
    await replaceFile(path, `${seconds}\n`).catch(() => undefined)
  }

  return {
    name: 'boot-time',
    async run(signal) {
      const mayWait = () => !signal.aborted && rebooted && uptimeMs() <= longestMs
      while (mayWait() && !isConnected()) await clock.sleep(lookMs, signal)
      if (mayWait()) await measured(uptimeMs())
      await aborted(signal)
    },
  }
}

function believed(text: string): number | undefined {
  const foundMs = /^\d+\n$/.test(text) ? Number(text) * 1000 : undefined
  return foundMs !== undefined && foundMs <= longestMs ? foundMs : undefined
}
