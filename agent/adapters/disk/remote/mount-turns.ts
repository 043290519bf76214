/**
 * Calls on remote mounts and to servers, one after another for each. Once one gave no answer, calls on it are refused at once: they would
 * hold up the workers of other pods. Probes in the background, one at a time, find when it answers again.
 */
import { startDeadline } from '../../../../daemon/deadline.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import type { MountPoint } from '../mounts.ts'
import { NoAnswer } from './bounded-child.ts'

/** A pod whose mount does not answer is tried every 10 s: so long probes go on after the last call. */
const usualPauseMs = 3_000
const mostUnasked = 4

/** Rejects with NoAnswer if there is none. Any other error is an answer. */
type Probe<Target> = (target: Target) => Promise<unknown>
export type Turns<Target> = <T>(target: Target, call: () => Promise<T>) => Promise<T>

type TurnsNeeds<Target> = {
  readonly keyOf: (target: Target) => string
  readonly probe: Probe<Target>
  /** Always the same for a target that does not answer: the events of the attempts are then counted together. */
  readonly refusal: (target: Target, cause: NoAnswer) => VolumeError
  readonly pauseMs?: number
}

export function mountTurns(probe: Probe<MountPoint>, pauseMs?: number): Turns<MountPoint> {
  return answerTurns({ keyOf: ({ path }) => path, probe, refusal: notAnswering, ...(pauseMs && { pauseMs }) })
}

type Silence = { readonly error: VolumeError; unasked: number }

export function answerTurns<Target>(needs: TurnsNeeds<Target>): Turns<Target> {
  const { keyOf, probe, refusal, pauseMs = usualPauseMs } = needs
  const last = new Map<string, Promise<unknown>>()
  /** `unasked`: probes since the last call. */
  const silent = new Map<string, Silence>()
  const probed = new Set<string>()

  const probeUntilAnswered = async (target: Target) => {
    const key = keyOf(target)
    if (probed.has(key)) return
    probed.add(key)
    for (let silence = silent.get(key); silence !== undefined && silence.unasked < mostUnasked; ) {
      silence.unasked++
      if (await answers(() => probe(target))) silent.delete(key)
      else await new Promise<void>((resolve) => startDeadline(pauseMs, resolve))
      silence = silent.get(key)
    }
    probed.delete(key)
  }

  return async (target, call) => {
    const key = keyOf(target)
    const silence = silent.get(key)
    if (silence !== undefined) {
      silence.unasked = 0
      void probeUntilAnswered(target)
      throw new VolumeError(silence.error.message)
    }
    const earlier = last.get(key)
    const own = (async () => {
      await earlier?.catch((error: unknown) => {
        if (error instanceof NoAnswer) throw error
      })
      return await call()
    })()
    last.set(key, own)
    try {
      return await own
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error
      const refused = refusal(target, error)
      silent.set(key, { error: refused, unasked: 0 })
      void probeUntilAnswered(target)
      throw refused
    } finally {
      if (last.get(key) === own) last.delete(key)
    }
  }
}

/** Any other error is an answer. */
async function answers(probe: () => Promise<unknown>): Promise<boolean> {
  try {
    await probe()
    return true
  } catch (error) {
    return !(error instanceof NoAnswer)
  }
}

function notAnswering({ path, type, source }: MountPoint, cause: NoAnswer): VolumeError {
  return new VolumeError(`the file system mounted at ${path} (${type}, ${source}) does not answer`, { cause })
}
