/** The button of the fleet's update entity: the rollout of the newest release begins, or goes on, as an operator may write it. */
import { isDeepStrictEqual } from 'node:util'
import { rolloutFields, rolloutKey, rolloutPath } from '../../../api/node/agent-rollout.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { LocalAnswer, LocalRequest } from '../../apiserver/filters/in-process-api.ts'
import { type RolloutWish, rolloutCommands } from '../../controllers/rollouts/rollout-object.ts'
import { newestWish, type OfferedRelease } from '../../controllers/rollouts/rollout-wish.ts'
import type { CommittedVersion } from './committed-versions.ts'
import { type FleetUpdateFacts, installStep, type WatchedRollout } from './fleet-update.ts'

export type RolloutInstallNeeds = {
  /** The releases that this controller serves. */
  readonly releases: () => Promise<readonly OfferedRelease[]>
  readonly installed: () => CommittedVersion | undefined
  readonly rollout: () => WatchedRollout | undefined
  /** Version of the object of the rollout in the store; undefined: there is none. */
  readonly rolloutRevision: () => string | undefined
  /** As the user of the buttons. */
  readonly request: (request: LocalRequest, signal: AbortSignal) => Promise<LocalAnswer>
  readonly clock: Clock
  readonly log: Log
}

export interface RolloutInstalls {
  facts(): FleetUpdateFacts
  /** The button was pressed. Again within a minute it does nothing, or within ten seconds where nothing came of it. */
  press(): void
  /** Looks for releases, which are added on the disk of the controller. */
  readonly releasesLoop: Loop
  readonly pressesLoop: Loop
}

const lookMs = 30_000
const pauseMs = 60_000
const afterFailureMs = 10_000
const mostRetries = 4
const againMs = 1_000
const idleMs = 24 * 3600_000
const fieldManager = 'home-assistant'

export function rolloutInstalls(needs: RolloutInstallNeeds): RolloutInstalls {
  const { releases, installed, rollout, rolloutRevision, request, clock, log } = needs
  const wake = alarm(clock)
  let newest: RolloutWish | undefined
  let quietUntilMs = Number.NEGATIVE_INFINITY
  let pressedMs: number | undefined

  const look = async () => {
    const found = newestWish(await releases())
    if (!isDeepStrictEqual(found, newest)) newest = found
  }
  const facts = () => ({ installed: installed(), newest, rollout: rollout() })

  const attempt = async (nowMs: number, signal: AbortSignal): Promise<Attempt> => {
    const step = installStep(facts())
    if (step.step === 'none') {
      log.info('Update of the fleet not requested', { because: step.because })
      return 'refused'
    }
    const isStart = step.step === 'start'
    const data = isStart ? rolloutCommands.start(step.wish) : rolloutCommands.resume(rfc3339(nowMs))
    const { code } = await request(writing(data, rolloutRevision()), signal)
    const about = { version: isStart ? step.wish.target.version : step.version, step: step.step }
    const isDone = code === 200 || code === 201
    if (isDone) log.info('Update of the fleet requested', about)
    else log.warn('Update of the fleet not requested', { ...about, code })
    return isDone ? 'done' : code === 409 ? 'overtaken' : 'refused'
  }

  /** Whether it was requested. Tried again where others write the object meanwhile: the controller does with each decision. */
  const act = async (nowMs: number, signal: AbortSignal): Promise<boolean> => {
    await look()
    let made = await attempt(nowMs, signal)
    for (let left = mostRetries; made === 'overtaken' && left > 0 && !signal.aborted; left--) {
      await clock.sleep(againMs, signal)
      made = await attempt(nowMs, signal)
    }
    return made === 'done'
  }

  return {
    facts,
    press() {
      const now = clock.monotonicMs()
      if (now < quietUntilMs) return
      quietUntilMs = now + pauseMs
      pressedMs = clock.wallMs()
      wake.ring()
    },
    releasesLoop: {
      name: 'home-assistant-releases',
      async run(signal) {
        while (!signal.aborted) {
          await look().catch((error: unknown) => log.debug('Releases cannot be listed', { error }))
          await clock.sleep(lookMs, signal)
        }
      },
    },
    pressesLoop: {
      name: 'home-assistant-rollouts',
      async run(signal) {
        while (!signal.aborted) {
          const ms = pressedMs
          pressedMs = undefined
          if (ms !== undefined && !(await acted(() => act(ms, signal))))
            quietUntilMs = clock.monotonicMs() + afterFailureMs
          if (pressedMs === undefined) await wake.sleep(idleMs, signal)
        }
      },
    },
  }

  async function acted(made: () => Promise<boolean>): Promise<boolean> {
    try {
      return await made()
    } catch (error) {
      log.warn('Update of the fleet not requested', { error })
      return false
    }
  }
}

type Attempt = 'done' | 'overtaken' | 'refused'
type Written = { readonly [key: string]: string | null }

/** Only the object that was looked at is changed. One that is not there is applied: the right to create it is one by its name. */
function writing(data: Written, resourceVersion: string | undefined): LocalRequest {
  const patch = { method: 'PATCH', path: rolloutPath } as const
  if (resourceVersion !== undefined)
    return { ...patch, body: { metadata: { resourceVersion }, data }, contentType: 'application/merge-patch+json' }
  const wish = data[rolloutFields.wish]
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: rolloutKey, data: { [rolloutFields.wish]: wish } }
  return { ...patch, body, contentType: 'application/apply-patch+yaml', fieldManager }
}
