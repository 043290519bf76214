import { getEventListeners, once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { test } from 'tap'
import { onceAtATime, startDeadline, TooLate, withDeadline, within, withinOr } from './deadline.ts'
import { fakeClock } from './testing/fake-clock.ts'
import { standStill } from './testing/stand-still.ts'

const never = () => new Promise<never>(() => undefined)

test('work has a deadline, and ends with its caller; no listener is left behind', async (t) => {
  const caller = new AbortController()
  const endless = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason)
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  t.equal(await withDeadline(60_000, caller.signal, async ({ aborted }) => aborted), false)
  await t.rejects(withDeadline(5, caller.signal, endless), { message: 'Not done within 0.005 s' })
  t.same(getEventListeners(caller.signal, 'abort'), [])
  const waiting = withDeadline(60_000, caller.signal, endless)
  caller.abort(new Error('called off'))
  await t.rejects(waiting, { message: 'called off' })
  await t.rejects(withDeadline(60_000, caller.signal, endless), { message: 'called off' }, 'also when it came before')
})

test('a deadline holds for work that does not react to its signal', async (t) => {
  let signal: AbortSignal | undefined
  const deaf = (own: AbortSignal) => {
    signal = own
    return never()
  }
  const late = await withDeadline(5, undefined, deaf, 'No answer').catch((error: unknown) => error)
  t.type(late, TooLate)
  t.match(late, { message: 'No answer within 0.005 s', code: 'ETIMEDOUT' })
  t.equal(signal?.reason, late)
})

test('what fails on its own before the deadline keeps its error', async (t) => {
  const broken = async () => {
    throw new Error('broken')
  }
  await t.rejects(withDeadline(60_000, undefined, broken), { message: 'broken' })
  await t.rejects(within(60_000, 'No answer', broken()), { message: 'broken' })
  await t.rejects(withinOr(60_000, 'late', broken()), { message: 'broken' })
})

test('work that cannot be aborted is left behind at its deadline', async (t) => {
  t.equal(await within(60_000, 'No answer', Promise.resolve('here')), 'here')
  t.equal(await within(60_000, 'No answer', Promise.resolve(undefined)), undefined)
  await t.rejects(within(5, 'No answer', never()), { message: 'No answer within 0.005 s', code: 'ETIMEDOUT' })
  const clock = fakeClock()
  const waiting = withinOr(1_000, 'late', never(), clock)
  await clock.advance(1_000)
  t.equal(await waiting, 'late')
})

test('an answer that arrives while this process stands still is in time', async (t) => {
  const server = createServer((socket) => socket.end('answer'))
  t.teardown(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  // The kernel accepts the connection. The server, which stands still with its client, has time to answer afterwards.
  const connecting = connect({ host: '127.0.0.1', port })
  const connected = within(50, 'No connection', once(connecting, 'connect'))
  const answered = withDeadline(2_000, undefined, (signal) => once(connecting, 'data', { signal }))
  standStill(2_500)
  await connected
  t.equal(String(await answered), 'answer')
})

test('a deadline passes at its time, and the time in which the process was suspended does not count', async (t) => {
  const clock = fakeClock()
  let passed = 0
  startDeadline(1_000, () => passed++, clock)
  const stop = startDeadline(1_000, () => t.fail('It was stopped'), clock)
  await clock.advance(999)
  t.equal(passed, 0)
  stop()
  await clock.advance(1)
  t.equal(passed, 1)
  startDeadline(1_000, () => passed++, clock)
  await clock.advance(240)
  clock.suspend(60_000)
  await clock.advance(999)
  t.equal(passed, 1)
  await clock.advance(1)
  t.equal(passed, 2)
})

test('a process that is always late gives up, too', async (t) => {
  const clock = fakeClock()
  let hasPassed = false
  startDeadline(
    1_000,
    () => {
      hasPassed = true
    },
    clock,
  )
  let turns = 0
  for (; !hasPassed && turns < 100; turns++) {
    clock.suspend(5_000)
    await clock.advance(0)
  }
  t.equal(turns, 8, 'four steps, each repeated once')
})

test('more callers for one path wait for the call that is under way', async (t) => {
  const finish: ((text: string) => void)[] = []
  const call = onceAtATime(() => new Promise<string>((resolve) => finish.push(resolve)))
  const [first, second, other] = [call('/a'), call('/a'), call('/b')]
  t.equal(finish.length, 2)
  for (const done of finish) done('answer')
  t.same(await Promise.all([first, second, other]), ['answer', 'answer', 'answer'])
  void call('/a')
  t.equal(finish.length, 3)
})
