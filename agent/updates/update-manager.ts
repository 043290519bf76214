/**
 * Loop: hands the release that the controller wants to the updater, which is a program of its own, and reports what became of it. The
 * agent itself installs nothing: one that is broken must not be able to replace what starts and judges it.
 */
import { isDeepStrictEqual } from 'node:util'
import { type AgentRelease, type AgentUpdateReport, isRelease } from '../../api/node/agent-update.ts'
import { alarm } from '../../daemon/alarm.ts'
import type { Cell, Reader } from '../../daemon/cell.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { Release, UpdateState } from '../../daemon/updates/update-state.ts'
import type { MachineCondition } from '../node/status/conditions.ts'
import type { DownloadRules } from './download-allowance.ts'
import { type UpdateNote, updateCondition, updateReport } from './update-report.ts'

/** What the updater is to install, and when it may download it. */
export type WantedUpdate = { readonly release: AgentRelease; readonly rules: DownloadRules }

/** The files of the updates on this machine. */
export interface UpdateFiles {
  /** The version of the package; undefined: this agent is of no package, and is not updated in this way. */
  base(): Promise<Pick<Release, 'version' | 'sequence'> | undefined>
  state(): Promise<UpdateState>
  note(): Promise<UpdateNote | undefined>
  /** How much of the release is downloaded, in steps of ten; undefined: nothing, or all is installed. */
  downloadedPercent(digest: string): Promise<number | undefined>
  /** What was saved last. */
  wanted(): Promise<WantedUpdate | undefined>
  /** On disk once it has resolved. Undefined: none is wanted. */
  saveWanted(wanted: WantedUpdate | undefined): Promise<void>
}

export type UpdateManagerNeeds = {
  readonly files: UpdateFiles
  readonly rules: DownloadRules
  readonly reads: {
    /** Undefined: nothing was received of the controller since the start of the agent. `release` undefined: it wants none. */
    readonly agentRelease: Reader<{ readonly release: AgentRelease | undefined } | undefined>
  }
  readonly writes: {
    readonly updateReport: Cell<AgentUpdateReport | undefined>
    readonly updateConditions: Cell<readonly MachineCondition[]>
  }
  readonly clock: Clock
  readonly log: Log
}

/** The launcher, the judge and the updater write their files without a notification. */
const everyMs = 30_000

export function updateManager({ files, rules, reads, writes, clock, log }: UpdateManagerNeeds): Loop {
  const wake = alarm(clock)

  /** What is saved afterwards. Without a message since the start what was saved before still holds. */
  const keepWanted = async (): Promise<AgentRelease | undefined> => {
    const saved = await files.wanted()
    const received = reads.agentRelease.get()
    const release = received === undefined ? saved?.release : received.release
    const wanted = release !== undefined && isRelease(release) ? { release, rules } : undefined
    if (!isDeepStrictEqual(wanted, saved)) {
      await files.saveWanted(wanted)
      log.info('The release that the controller wants to run here changed', { version: release?.version ?? 'none' })
    }
    return wanted?.release
  }

  const pass = async () => {
    const base = await files.base()
    if (base === undefined) return
    const wanted = await keepWanted()
    // A metered link does not pay for each step.
    const percent = wanted === undefined || rules.isMetered ? undefined : await files.downloadedPercent(wanted.digest)
    const report = updateReport({ base, wanted, state: await files.state(), note: await files.note(), percent })
    writes.updateReport.set(report)
    writes.updateConditions.set([updateCondition(report)])
  }

  return {
    name: 'agent-update',
    async run(signal) {
      const stopListening = reads.agentRelease.onChange(wake.ring)
      try {
        while (!signal.aborted) {
          await pass().catch((error: unknown) => log.warn('Cannot read or save the state of updates', { error }))
          await wake.sleep(everyMs, signal)
        }
      } finally {
        stopListening()
      }
    },
  }
}
