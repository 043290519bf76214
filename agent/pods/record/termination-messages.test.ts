import { test } from 'tap'
import type { Container } from '../../../api/pod.ts'
import { asksForLog, lastBytes, messageMount, withinPod } from './termination-messages.ts'

const container = (more: Partial<Container> = {}): Container => ({ name: 'main', ...more })

test('the file is where the container looks for it', async (t) => {
  const file = { source: '/run/x', readOnly: false, propagation: 'rprivate' }
  t.same(messageMount(container(), [], '/run/x'), [{ ...file, target: '/dev/termination-log' }])
  t.match(messageMount(container({ terminationMessagePath: '' }), [], '/run/x'), [{ target: '/dev/termination-log' }])
  const own = container({ terminationMessagePath: 'tmp/why' })
  const [mount] = messageMount(own, [], '/run/x')
  t.equal(mount?.target, '/tmp/why')
  t.same(messageMount(own, mount === undefined ? [] : [mount], '/run/x'), [], 'it has one of its own there')
})

test('a log replaces the message only if the policy asks for it, and only after a failure', async (t) => {
  const asks = container({ terminationMessagePolicy: 'FallbackToLogsOnError' })
  t.same([asksForLog(asks, 1), asksForLog(asks, 0), asksForLog(container(), 1)], [true, false, false])
})

test('no character is cut in two', async (t) => {
  t.equal(lastBytes(Buffer.from('äöü'), 3), 'ü')
  t.equal(lastBytes(Buffer.from('abc'), 9), 'abc')
  const status = { name: 'main', ready: false, restartCount: 0, image: '', imageID: '' }
  const state = { terminated: { exitCode: 1, message: 'ä'.repeat(4096) } }
  const [short] = withinPod([{ ...status, state, lastState: state }], 5)
  t.equal(short?.state?.terminated?.message, 'ä'.repeat(1228), '12 KiB for five')
  t.same(short?.lastState, short?.state)
  t.same(withinPod([status], 1), [status])
})
