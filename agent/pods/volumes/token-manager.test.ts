import { type Test, test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { type ApiAnswer, ApiUnreachable } from '../../../daemon/api-client.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { fakeVolumes } from '../../testing/fake-volumes.ts'
import { tokenManager } from './token-manager.ts'

const hourMs = 3600_000
const projected = { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 3600 } }] }
const web = aPod({
  name: 'web',
  uid: 'u',
  containers: [{ name: 'main', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
  spec: { serviceAccountName: 'reader', volumes: [{ name: 'v', projected }] },
})
const plain = aPod({ name: 'plain', uid: 'p' })

type Sent = { readonly path: string; readonly body: unknown }

function world(t: Test, volumes = fakeVolumes()) {
  const clock = fakeClock()
  const sent: Sent[] = []
  const changed: string[] = []
  const answers: (Partial<ApiAnswer> | Error)[] = []
  const needs = {
    api: {
      async post(path: string, body: unknown) {
        sent.push({ path, body })
        const answer = answers.shift() ?? { status: 201, body: { status: { token: `t.${sent.length}.s` } } }
        if (answer instanceof Error) throw answer
        return { status: 500, body: '', dateHeader: undefined, ...answer }
      },
    },
    volumes,
    driverTokens: () => [],
    changed: (uid: string) => changed.push(uid),
    clock,
    random: () => 0.5,
    log: quietLog(t),
  }
  const manager = tokenManager(needs, { renewalMs: 24 * hourMs })
  const stopping = new AbortController()
  const running = manager.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  const tokens = async () => [...(await manager.of(web)).values()]
  return { clock, sent, changed, answers, manager, volumes, tokens }
}

const away = () => new ApiUnreachable('Cannot POST', 'ECONNREFUSED', { cause: new Error('refused') })

test('a token is requested for the pod, kept in memory and on the disk, and renewed', async (t) => {
  const { clock, sent, changed, volumes, tokens, manager } = world(t)
  t.same(await tokens(), [], 'nothing waits for it')
  await clock.settle()
  t.same(sent, [
    {
      path: '/api/v1/namespaces/default/serviceaccounts/reader/token',
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          expirationSeconds: 3600,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'u' },
        },
      },
    },
  ])
  t.same(changed, ['u'])
  t.same(await tokens(), [{ value: 't.1.s' }])
  t.equal(await manager.of(web), await manager.of(web), 'the same map until one changes')
  t.same([...volumes.durableTokens.values()], ['t.1.s'])
  await clock.advance(0.76 * hourMs - 1)
  t.equal(sent.length, 1)
  await clock.advance(1)
  t.same(await tokens(), [{ value: 't.2.s' }])
  t.same(changed, ['u', 'u'])
  t.same([...volumes.durableTokens.values()], ['t.1.s'], 'the card is spared')
  await clock.advance(12 * hourMs)
  t.not(volumes.durableTokens.values().next().value, 't.1.s', 'for twelve hours')
  t.equal(changed.length, sent.length)
  t.same([...(await manager.of(plain))], [])
})

test('an audience is requested by its name', async (t) => {
  const { clock, sent, manager } = world(t)
  const sources = [{ serviceAccountToken: { path: 'token', audience: 'vault' } }]
  await manager.of({ ...web, spec: { ...web.spec, volumes: [{ name: 'v', projected: { sources } }] } })
  await clock.settle()
  t.match(sent, [{ body: { spec: { audiences: ['vault'] } } }])
})

test('without the controller a pod has the token that was saved', async (t) => {
  const before = world(t)
  await before.tokens()
  await before.clock.settle()
  const { clock, sent, answers, tokens, changed } = world(t, before.volumes)
  answers.push(away(), away())
  t.same(await tokens(), [{ value: 't.1.s' }])
  await clock.advance(29_999)
  t.equal(sent.length, 0)
  await clock.advance(1)
  t.equal(sent.length, 1, 'it is renewed within a minute')
  await clock.advance(2_500)
  t.equal(sent.length, 2, 'and tried again, less and less often')
  t.same([await tokens(), changed], [[{ value: 't.1.s' }], []])
  await clock.advance(5_000)
  t.same([await tokens(), changed], [[{ value: 't.3.s' }], ['u']])
})

test('why there is no token is known, and it is tried again', async (t) => {
  const { clock, answers, tokens, changed, sent } = world(t)
  const refusal = { kind: 'Status', message: 'serviceaccounts "reader" not found' }
  answers.push({ status: 404, body: refusal }, { status: 404, body: refusal }, { status: 201, body: {} })
  await tokens()
  await clock.settle()
  t.same(await tokens(), [{ missing: 'failed to fetch token: serviceaccounts "reader" not found' }])
  t.same(changed, ['u'])
  await clock.advance(500)
  t.same([sent.length, changed], [2, ['u']], 'the same reason is not a change')
  await clock.advance(1_000)
  t.same(await tokens(), [{ missing: 'failed to fetch token: the answer of the controller has no token' }])
  await clock.advance(2_000)
  t.same(await tokens(), [{ value: 't.4.s' }])
})

test('an answer that is not a token is not used', async (t) => {
  const { clock, answers, tokens } = world(t)
  const bodies = [{ status: { token: 'a\nb' } }, { status: { token: '' } }, { status: { token: 5 } }, 'text', null]
  for (const body of [...bodies, { status: { token: 'a'.repeat(16_385) } }]) answers.push({ status: 201, body })
  answers.push({ status: 500, body: 'broken' }, { status: 201, body: { status: { token: 'a'.repeat(16_384) } } })
  await tokens()
  for (let tries = 0; tries < 6; tries++) {
    await clock.settle()
    t.same(await tokens(), [{ missing: 'failed to fetch token: the answer of the controller has no token' }])
    await clock.advance(500 * 2 ** tries)
  }
  t.same(await tokens(), [{ missing: 'failed to fetch token: the controller answered 500' }])
  await clock.advance(15_000)
  t.match(await tokens(), [{ value: /^a+$/ }])
})

test('a token that cannot be saved is used', async (t) => {
  const { clock, tokens, volumes } = world(t)
  await tokens()
  volumes.failNext('No space left on device')
  await clock.settle()
  t.same(await tokens(), [{ value: 't.1.s' }])
  t.same([...volumes.durableTokens], [])
  await clock.advance(0.76 * hourMs)
  t.same([...volumes.durableTokens.values()], ['t.2.s'], 'the next one is saved')
})

test('the tokens of a pod that is gone are not renewed', async (t) => {
  const { clock, sent, answers, changed, tokens, manager, volumes } = world(t)
  for (const answer of [undefined, new Error('too late')]) {
    if (answer !== undefined) answers.push(answer)
    await tokens()
    manager.forget('u')
    await clock.settle()
    t.same([changed, [...volumes.durableTokens]], [[], []], 'an answer that comes after that is dropped')
  }
  await tokens()
  await clock.settle()
  manager.forget('u')
  const before = sent.length
  await clock.advance(2 * hourMs)
  t.equal(sent.length, before)
})

test('a pod without an account gets no token', async (t) => {
  const { clock, sent, manager } = world(t)
  const { serviceAccountName: _, ...spec } = web.spec
  await manager.of({ ...web, spec })
  await clock.settle()
  t.same(
    [...(await manager.of({ ...web, spec })).values()],
    [{ missing: 'failed to fetch token: the pod has no service account' }],
  )
  t.equal(sent.length, 0)
})
