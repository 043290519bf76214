import { test } from 'tap'
import type { CheckpointWindow } from '../store/checkpoints/checkpoint-window.ts'
import { lateCheckpointWindow } from './late-checkpoint-window.ts'

const origin = (acceptsCheckpoints: boolean) => ({ id: 'store-1', acceptsCheckpoints, learns: false })

/** A window of the leader that the test closes. */
function leadersWindow() {
  const closed: (() => void)[] = []
  let isOpen = true
  const window: CheckpointWindow = {
    name: 'leader',
    isOpen: () => isOpen,
    progress: () => ({ isOpen, openMs: 5, nodes: [] }),
    onClose: (listener) => void closed.push(listener),
    run: async () => undefined,
  }
  const close = () => {
    isOpen = false
    for (const listener of closed) listener()
  }
  return { window, close }
}

test('until it leads, a controller has the window of the store: the leader decides', async (t) => {
  t.equal(lateCheckpointWindow(origin(true)).isOpen(), true)
  t.equal(lateCheckpointWindow(origin(false)).isOpen(), false)
  t.same(lateCheckpointWindow(origin(true)).progress(), { isOpen: true, openMs: 0, nodes: [] })
})

test('once it leads, the window is its own, and listeners from before are notified', async (t) => {
  const late = lateCheckpointWindow(origin(false))
  let closed = 0
  late.onClose(() => closed++)
  const { window, close } = leadersWindow()
  late.begin(window)
  t.equal(late.isOpen(), true)
  t.equal(late.progress().openMs, 5)
  late.onClose(() => closed++)
  close()
  t.equal(late.isOpen(), false)
  t.equal(closed, 2)
})
