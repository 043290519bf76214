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

test('another mount does not take the place of the message', async (t) => {
  const elsewhere = { source: '/x', target: '/data', readOnly: false, propagation: 'rprivate' } as const
  t.equal(messageMount(container(), [elsewhere], '/run/x').length, 1)
})

test('a message within the share of its container is kept whole', async (t) => {
  const status = { name: 'main', ready: false, restartCount: 0, image: '', imageID: '' }
  const messageIn = (text: string, containers: number) => {
    const [only] = withinPod([{ ...status, state: { terminated: { exitCode: 1, message: text } } }], containers)
    return only?.state?.terminated?.message
  }
  t.equal(messageIn('x'.repeat(12_288), 1), 'x'.repeat(12_288))
  t.equal(messageIn('x'.repeat(12_289), 1), 'x'.repeat(12_288))
  t.equal(messageIn('x'.repeat(12_289), 0), 'x'.repeat(12_288), 'no division by zero')
  t.equal(messageIn('ä'.repeat(6_144), 1), 'ä'.repeat(6_144))
  t.equal(messageIn('a', 12_288), 'a')
  t.equal(messageIn('ä', 12_288), '', 'a character that does not fit at all')
  t.equal(messageIn('x', 99_999), '', 'a share of nothing')
  const silent = { ...status, state: { terminated: { exitCode: 0 } }, lastState: { waiting: { reason: 'Wait' } } }
  t.same(withinPod([silent], 1), [silent])
  t.same(Object.keys(withinPod([status], 1)[0] ?? {}).sort(), Object.keys(status).sort())
})

test('the end of a text begins with a whole character', async (t) => {
  t.equal(lastBytes(Buffer.from('äb'), 2), 'b')
  t.equal(lastBytes(Buffer.from('ä'), 1), '')
  t.equal(lastBytes(Buffer.from('ä'), 2), 'ä')
  t.equal(lastBytes(Buffer.from(''), 2), '')
  t.equal(lastBytes(Buffer.from([0x80, 0x61]), 2), '\ufffda', 'broken bytes at the start stay')
  t.equal(lastBytes(Buffer.from([0x80, 0x80, 0x80]), 2), '')
})
