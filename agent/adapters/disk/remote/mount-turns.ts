/**
 * Calls on remote mounts, one after another for each mount. Once a mount gave no answer, calls on it are refused at once: they would hold up
 * the workers of other pods. Probes in the background, one at a time, find when it answers again.
 */
import { startDeadline } from '../../../../daemon/deadline.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import type { MountPoint } from '../mounts.ts'
import { NoAnswer } from './bounded-child.ts'

/** A pod whose mount does not answer is tried every 10 s: so long probes go on after the last call. */
const usualPauseMs = 3_000
const mostUnasked = 4

export type MountTurns = <T>(mount: MountPoint, call: () => Promise<T>) => Promise<T>

/** `probe`: rejects with NoAnswer where the mount does not answer. */
export function mountTurns(probe: (mount: MountPoint) => Promise<unknown>, pauseMs = usualPauseMs): MountTurns {
  const last = new Map<string, Promise<unknown>>()
  /** By mount point: probes since the last call. */
  const silent = new Map<string, number>()
  const probed = new Set<string>()

  const probeUntilAnswered = async (mount: MountPoint) => {
    const { path } = mount
    if (probed.has(path)) return
    probed.add(path)
    while ((silent.get(path) ?? mostUnasked) < mostUnasked) {
      silent.set(path, (silent.get(path) ?? 0) + 1)
      if (await answers(() => probe(mount))) silent.delete(path)
      else await new Promise<void>((resolve) => startDeadline(pauseMs, resolve))
    }
    probed.delete(path)
  }

  return async (mount, call) => {
    if (silent.has(mount.path)) {
      silent.set(mount.path, 0)
      void probeUntilAnswered(mount)
      throw notAnswering(mount)
    }
    const earlier = last.get(mount.path)
    const own = (async () => {
      await earlier?.catch((error: unknown) => {
        if (error instanceof NoAnswer) throw error
      })
      return await call()
    })()
    last.set(mount.path, own)
    try {
      return await own
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error
      silent.set(mount.path, 0)
      void probeUntilAnswered(mount)
      throw notAnswering(mount, error)
    } finally {
      if (last.get(mount.path) === own) last.delete(mount.path)
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

/** Always the same text, so that the events of the attempts are counted together. */
function notAnswering({ path, type, source }: MountPoint, cause?: NoAnswer): VolumeError {
  return new VolumeError(`the file system mounted at ${path} (${type}, ${source}) does not answer`, { cause })
}
