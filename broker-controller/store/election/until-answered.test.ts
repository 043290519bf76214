import { type Test, test } from 'tap'
import { ApiError } from '../../../api/api-error.ts'
import { aborted } from '../../../daemon/aborted.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { ensureClusterInfo, ensureFleetObjects } from '../../assembly/bootstrap-objects.ts'
import { uncertainStore } from '../../testing/uncertain-store.ts'
import { beginIssuedCertificates } from '../certificates/issued-certificates.ts'
import { checkpointWindowKey, openCheckpointWindow } from '../checkpoints/checkpoint-window.ts'
import { eventRecorder } from '../event-recorder.ts'
import { memoryStore } from '../memory-store.ts'
import { StoreFullError } from '../store.ts'
import { LeadershipLostError } from './election.ts'
import { untilAnswered } from './until-answered.ts'

const timeout = () => new ApiError('Timeout', 'etcd did not answer: the write may have happened')

function world(t: Test, keep: (signal: AbortSignal) => Promise<void> = aborted) {
  const clock = fakeClock()
  const log = quietLog(t)
  const stop = new AbortController()
  return { clock, log, stop, needs: { what: 'the term', keep, clock, log, signal: stop.signal } }
}

for (const happens of [true, false]) {
  const title = `what a leader writes first is complete when each write ${happens ? 'happened' : 'was lost'} without an answer`
  test(title, async (t) => {
    const { clock, needs } = world(t)
    const inner = memoryStore({ clock })
    const { store, unanswered } = uncertainStore(inner, happens)
    const shared = { store, clock, log: needs.log, events: eventRecorder({ store, clock }) }
    const origin = { id: 'a', acceptsCheckpoints: true, sinceMs: clock.wallMs() }
    const info = { server: 'https://a:6443', mqttPort: 8883, trusted: '', caHash: 'aa' }
    const steps = [
      () => ensureFleetObjects(store, clock),
      () => beginIssuedCertificates(shared, 'aa'),
      () => openCheckpointWindow(shared, origin),
      () => ensureClusterInfo(shared, info),
    ]
    let isOver = false
    const running = (async () => {
      for (const act of steps) await untilAnswered<unknown>(needs, act)
      isOver = true
    })()
    while (!isOver) await Promise.race([clock.advance(250), running])
    await running
    t.ok(unanswered() > 4)
    t.ok(await inner.get('namespaces', { namespace: '', name: 'kube-system' }))
    t.match(await inner.get('configmaps', checkpointWindowKey), { data: { state: 'open' } })
    t.match(await inner.get('configmaps', { namespace: 'kube-public', name: 'cluster-info' }), {
      data: { caHash: 'aa' },
    })
  })
}

test('an outage is logged once, and its end', async (t) => {
  const { clock, log, needs } = world(t)
  let calls = 0
  const running = untilAnswered(needs, async () => {
    if (++calls < 6) throw timeout()
    return 'written'
  })
  await clock.advance(250)
  t.equal(calls, 2)
  await clock.advance(60_000)
  t.equal(await running, 'written')
  t.equal(calls, 6)
  t.same(log.messages('warn'), ['Cannot write to the store yet'])
  t.match(log.lines[0]?.facts, { what: 'the term', remedy: /etcdctl endpoint health/ })
  t.same(log.messages('info'), ['The store answers again'])
})

test('a leader that has lost its key does not try again', async (t) => {
  const lost = new LeadershipLostError('Another controller may lead')
  let lose = () => {}
  const keep = () =>
    new Promise<void>((_, reject) => {
      lose = () => reject(lost)
    })
  const { clock, needs } = world(t, keep)
  let calls = 0
  const running = untilAnswered(needs, async () => {
    calls++
    throw timeout()
  })
  await clock.settle()
  lose()
  await t.rejects(running, lost)
  t.equal(calls, 1)
})

test('a store without space is written when it has some again', async (t) => {
  const { clock, log, needs } = world(t)
  let isFull = true
  const running = untilAnswered(needs, async () => {
    if (isFull) throw new StoreFullError('etcd has no space left: compact and defragment it')
    return 'written'
  })
  await clock.advance(600_000)
  t.same(log.messages('warn'), ['Cannot write to the store yet'])
  t.match(log.lines[0]?.facts, { error: /compact and defragment/ })
  isFull = false
  await clock.advance(2_000)
  t.equal(await running, 'written')
})

test('an error that does not pass is thrown at once', async (t) => {
  const { log, needs } = world(t)
  const refused = new ApiError('InternalError', 'etcd refuses the client certificate')
  await t.rejects(
    untilAnswered(needs, async () => Promise.reject(refused)),
    refused,
  )
  t.same(log.lines, [])
})

test('the end of the controller ends the attempts', async (t) => {
  const { clock, stop, needs } = world(t)
  const running = untilAnswered(needs, async () => Promise.reject(timeout()))
  await clock.settle()
  stop.abort()
  await t.rejects(running, { message: /may have happened/ })
  t.equal(clock.sleepers, 0)
})
