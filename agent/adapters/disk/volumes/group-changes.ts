/**
 * Work on the files of volumes that may take long: a worker waits for it a little, and it goes on afterwards. A volume has one such work at a
 * time, and its pod comes first until the volume is placed for it: as with the kubelet, which locks the volume until it is mounted
 * (localVolumeMounter.SetUpAt in pkg/volume/local/local.go). A pod that does not come back for it, since another of its volumes cannot be
 * mounted, has its turn for five minutes.
 */
import { startDeadline } from '../../../../daemon/deadline.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'

/** The hint is the kubelet's (SetVolumeOwnership in pkg/volume/volume_linux.go). */
const hint =
  'If the volume has a lot of files then setting volume ownership could be slow, see https://github.com/kubernetes/kubernetes/issues/69699; fsGroupChangePolicy: OnRootMismatch does it once'
const stillChanging = `the files of the volume are being given to the fsGroup. ${hint}`
const changedForOther = `the files of the volume are being given to the fsGroup of another pod, which gets it first. ${hint}`

type Change = {
  readonly podUID: string
  readonly stopping: AbortController
  readonly done: Promise<void>
  state: 'running' | 'done' | 'failed'
  /** When it ended, by `now`. */
  endedMs: number
}

/** A pod that waits for another of its volumes tries again at least this often. */
const longestUnplacedMs = 5 * 60_000

export interface GroupChanges {
  /** Throws VolumeError while the volume is given to the group of another pod, or was and is not placed for it yet. */
  refuseForOther(volume: string, podUID: string): void
  /** Starts the work, or waits for what this pod has started. Throws VolumeError while it runs, and as `refuseForOther`. */
  give(volume: string, podUID: string, work: (signal: AbortSignal) => Promise<void>): Promise<void>
  /** Files of the volume may be in work, or are to be placed for the pod that they were given to. */
  isChanging(volume: string): boolean
  /** The volume is placed for the pod: what others do is decided by that. */
  placed(volume: string, podUID: string): void
  /** Ends the work for this pod. Another one has its turn when that has ended. */
  stop(podUID: string): void
}

/** `stopped` is called when work that was stopped has ended. `now`: milliseconds of a clock that never goes back. */
export function groupChanges(
  patienceMs: number,
  {
    stopped = () => undefined,
    now = () => performance.now(),
  }: { readonly stopped?: () => void; readonly now?: () => number } = {},
): GroupChanges {
  const changes = new Map<string, Change>()

  const end = (volume: string, change: Change) => {
    if (changes.get(volume) === change) changes.delete(volume)
  }
  const start = (volume: string, podUID: string, work: (signal: AbortSignal) => Promise<void>): Change => {
    const stopping = new AbortController()
    const change: Change = { podUID, stopping, done: work(stopping.signal), state: 'running', endedMs: 0 }
    const settled = (state: 'done' | 'failed') => {
      change.state = state
      change.endedMs = now()
      if (!stopping.signal.aborted) return
      end(volume, change)
      stopped()
    }
    // The caller that waits for it, or the next one of its pod, throws its error.
    change.done.then(
      () => settled('done'),
      () => settled('failed'),
    )
    changes.set(volume, change)
    return change
  }

  const isInTheWay = ({ state, endedMs }: Change) =>
    state === 'running' || (state === 'done' && now() - endedMs < longestUnplacedMs)
  /** Throws VolumeError if another pod is in the way. */
  const ownOf = (volume: string, podUID: string): Change | undefined => {
    const present = changes.get(volume)
    const isOwn = present?.podUID === podUID && !present.stopping.signal.aborted
    if (present !== undefined && !isOwn && isInTheWay(present)) throw new VolumeError(changedForOther)
    return isOwn ? present : undefined
  }

  return {
    isChanging: (volume) => (changes.get(volume)?.state ?? 'failed') !== 'failed',
    refuseForOther: (volume, podUID) => void ownOf(volume, podUID),
    async give(volume, podUID, work) {
      const change = ownOf(volume, podUID) ?? start(volume, podUID, work)
      const isOver = await doneWithin(patienceMs, change.done).catch((error: unknown) => {
        end(volume, change)
        throw error
      })
      if (!isOver) throw new VolumeError(stillChanging)
    },
    placed(volume, podUID) {
      const change = changes.get(volume)
      if (change?.podUID === podUID) end(volume, change)
    },
    stop(podUID) {
      for (const [volume, change] of changes) {
        if (change.podUID !== podUID) continue
        change.stopping.abort()
        if (change.state !== 'running') end(volume, change)
      }
    },
  }
}

async function doneWithin(ms: number, done: Promise<void>): Promise<boolean> {
  let stop = () => {}
  const patience = new Promise<boolean>((resolve) => {
    stop = startDeadline(ms, () => resolve(false))
  })
  try {
    return await Promise.race([done.then(() => true), patience])
  } finally {
    stop()
  }
}
