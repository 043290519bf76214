/** The checkpoint window of a controller that does not lead yet: the leader keeps the state, and writes it. */
import type { CheckpointWindow } from '../store/checkpoints/checkpoint-window.ts'
import type { StoreOrigin } from '../store/store.ts'

export type LateCheckpointWindow = CheckpointWindow & {
  /** This controller leads: from now on the window is this one. */
  begin(window: CheckpointWindow): void
}

/** Until it leads, it counts as open where the store accepts checkpoints: the leader, to which they are passed on, decides. */
export function lateCheckpointWindow({ acceptsCheckpoints }: StoreOrigin): LateCheckpointWindow {
  let begun: CheckpointWindow | undefined
  const listeners: (() => void)[] = []
  return {
    name: 'checkpoint-window',
    isOpen: () => begun?.isOpen() ?? acceptsCheckpoints,
    progress: () => begun?.progress() ?? { isOpen: acceptsCheckpoints, openMs: 0, nodes: [] },
    onClose: (closed) => void listeners.push(closed),
    begin(window) {
      begun = window
      window.onClose(() => {
        for (const listener of listeners) listener()
      })
    },
    async run(signal) {
      await begun?.run(signal)
    },
  }
}
