import { type Duplex, PassThrough } from 'node:stream'
import { type Test, test } from 'tap'
import { aborted } from '../../daemon/aborted.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { defaultSessionRunnerLimits, sessionRunner } from './session-runner.ts'

test('a session is connected by its id and given to its handler; both end together', async (t) => {
  const { sessions, dialled } = runner(t)
  let given: Duplex | undefined
  t.ok(
    sessions.start('one', async (stream) => {
      given = stream
      stream.write('hello')
    }),
  )
  t.notOk(
    sessions.start('one', async () => undefined),
    'a request that comes twice starts one session',
  )
  await turns()
  t.same([...dialled.keys()], ['one'])
  t.equal(given, dialled.get('one'))
  t.ok(given?.destroyed)
  t.equal(sessions.size, 0)
})

test('a session ends when the controller closes the stream', async (t) => {
  const { sessions, dialled } = runner(t)
  sessions.start('one', async (_, signal) => aborted(signal))
  await turns()
  t.equal(sessions.size, 1)
  dialled.get('one')?.destroy()
  await turns()
  t.equal(sessions.size, 0)
})

test('all sessions end with the connection to the controller, and new ones can be started', async (t) => {
  const { sessions, dialled } = runner(t)
  for (const id of ['one', 'two']) sessions.start(id, async (_, signal) => aborted(signal))
  await turns()
  await sessions.end()
  t.equal(sessions.size, 0)
  t.ok([...dialled.values()].every(({ destroyed }) => destroyed))
  t.ok(sessions.start('three', async () => undefined))
})

test('sessions are bounded in number and in time', async (t) => {
  const { sessions, clock, dialled } = runner(t, { atOnce: 1 })
  t.ok(sessions.start('one', async (_, signal) => aborted(signal)))
  t.notOk(sessions.start('two', async () => undefined))
  await turns()
  await clock.advance(defaultSessionRunnerLimits.longestMs + 1)
  await turns()
  t.ok(dialled.get('one')?.destroyed)
  t.equal(sessions.size, 0)
})

test('a controller that does not answer is given up, and a failed handler is logged', async (t) => {
  const log = quietLog(t, 'Stream to the controller ended')
  const clock = fakeClock()
  const dial = async (id: string, signal: AbortSignal) => {
    if (id === 'silent') await aborted(signal)
    return new PassThrough()
  }
  const sessions = sessionRunner({ dial, clock, log })
  sessions.start('silent', async () => void t.fail('there is no stream'))
  await clock.advance(defaultSessionRunnerLimits.connectMs + 1)
  await turns()
  t.equal(sessions.size, 0)
  sessions.start('failing', async () => {
    throw new Error('no such container')
  })
  await turns()
  t.equal(sessions.size, 0)
  t.same(log.messages('warn'), ['Stream to the controller ended'])
})

function runner(t: Test, limits: Partial<typeof defaultSessionRunnerLimits> = {}) {
  const clock = fakeClock()
  const dialled = new Map<string, Duplex>()
  const dial = async (id: string) => {
    const stream = new PassThrough()
    dialled.set(id, stream)
    return stream
  }
  const sessions = sessionRunner({
    dial,
    clock,
    log: quietLog(t),
    limits: { ...defaultSessionRunnerLimits, ...limits },
  })
  t.teardown(() => sessions.end())
  return { sessions, clock, dialled }
}

async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
}
