import { request } from 'node:https'
import { test } from 'tap'
import type { ClusterRoleBinding } from '../../api/access/cluster-role-binding.ts'
import { encodeKioskLink } from '../../api/access/kiosk-link.ts'
import type { FleetUpdate } from '../../api/dashboard/dashboard-messages.ts'
import { administrator, type Identity } from '../../api/identity.ts'
import { aNode, aPod } from '../../api/testing/builders.ts'
import { openAuthorizer } from '../../broker-controller/apiserver/authorization/authorizer.ts'
import { secretDigest } from '../../broker-controller/apiserver/browser-sessions/dashboard-sessions.ts'
import { defaultClusterRoleBindings, defaultClusterRoles } from '../../broker-controller/default-roles/default-roles.ts'
import { memoryStore } from '../../broker-controller/store/memory-store.ts'
import { startApi } from '../../broker-controller/testing/api-under-test.ts'
import { usageBoard } from '../../broker-controller/usage/usage-board.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { openDashboard } from './dashboard.ts'
import { dashboardFleet } from './dashboard-fleet.ts'
import { servedDashboard } from './dashboard-requests.ts'

type Test = Parameters<typeof quietLog>[0] & { teardown(end: () => Promise<unknown>): void }

type Answer = { readonly code: number; readonly headers: NodeJS.Dict<string | string[]>; readonly text: string }

type Sent = {
  readonly cookie?: string
  readonly as?: Identity
  readonly body?: unknown
  readonly headers?: { readonly [name: string]: string | undefined }
}

/** An API with a dashboard on a real port, and a browser's requests. */
async function aDashboard(t: Test, bindings: readonly ClusterRoleBinding[] = []) {
  const log = quietLog(t)
  const store = memoryStore({ clock })
  for (const role of defaultClusterRoles) await store.create('clusterroles', role)
  for (const binding of [...defaultClusterRoleBindings, ...bindings]) await store.create('clusterrolebindings', binding)
  const access = await openAuthorizer({ store, clock, log })
  const fleet = dashboardFleet({
    store,
    clock,
    log,
    access,
    usage: usageBoard({ clock }),
    commonNameOf: () => undefined,
    alwaysSample: false,
  })
  const dashboard = openDashboard({
    store,
    clock,
    log,
    access,
    fleet,
    version: '0.1.0',
    authority: () => ({ trusted: 'PEM', caHash: 'sha256:00', server: 'https://pi:6443' }),
    files: { answer: async () => undefined },
  })
  const api = await startApi({ log, over: { store, access, dashboard: servedDashboard(dashboard) } })
  const stopping = new AbortController()
  const running = fleet.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await access.run(AbortSignal.abort())
    await running
    await api.stop()
  })
  const open = (
    method: string,
    path: string,
    { cookie, as, body, headers = {} }: Sent,
    onText?: (text: string) => void,
  ) =>
    new Promise<Answer>((resolve, reject) => {
      const sent = {
        host: `127.0.0.1:${api.port}`,
        origin: api.url,
        'sec-fetch-site': 'same-origin',
        'x-bramble-csrf': '1',
      }
      const given = Object.entries({ ...sent, cookie, ...headers }).filter(([, value]) => value !== undefined)

      const issued = as && api.issueFor(as)
      const options = {
        method,
        ca: api.authority.certificate,

        ...(issued && { cert: issued.certificate, key: issued.key }),
        headers: Object.fromEntries(given) as { [name: string]: string },
        agent: false,
      }
      const asked = request(new URL(path, api.url), options, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (piece: string) => {
          text += piece
          onText?.(text)
        })
        answer.once('error', reject)
        answer.once('close', () => resolve({ code: answer.statusCode ?? 0, headers: answer.headers, text }))
      })
      asked.once('error', reject)
      asked.end(body === undefined ? undefined : JSON.stringify(body))
    })
  const ask = (method: string, path: string, sent: Sent = {}) => open(method, path, sent)
  const login = async (body: object) => {
    const answer = await ask('POST', '/ui/api/login', { body })
    return { ...answer, cookie: answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '' }
  }
  const loginAs = async (as: Identity) => {
    const made = JSON.parse((await ask('POST', '/ui/api/links', { as })).text) as { link: string }
    return { ...(await login({ link: made.link })), link: made.link }
  }
  /** Follows the stream until `seen` is true of all that came; what came. */
  const follow = (cookie: string) => {
    const updates: FleetUpdate[] = []
    let wake = () => {}
    const ended = open('GET', '/ui/api/stream', { cookie }, (text) => {
      const whole = text.split('\n\n').slice(0, -1)
      updates.splice(
        0,
        updates.length,
        ...whole.filter((one) => one.startsWith('data: ')).map((one) => JSON.parse(one.slice(6)) as FleetUpdate),
      )
      wake()
    })
    const seen = async (condition: (updates: readonly FleetUpdate[]) => boolean) => {
      while (!condition(updates)) await new Promise<void>((resolve) => (wake = resolve))
    }
    return { ended, seen, updates }
  }
  return { store, ask, login, loginAs, follow, sessions: dashboard.sessions }
}

const viewer: Identity = { user: 'vera', groups: ['viewers'] }

test('nothing of the fleet is readable without a session', async (t) => {
  const { ask, login } = await aDashboard(t)
  for (const path of ['stream', 'session', 'sessions', 'history?node=pi-1', 'doctor?node=pi-1'].map(
    (one) => `/ui/api/${one}`,
  )) {
    t.equal((await ask('GET', path)).code, 401, path)
  }
  t.equal((await ask('POST', '/ui/api/links')).code, 401)
  t.equal((await ask('GET', '/api/v1/nodes', { cookie: '__Host-bramble-session=0.0' })).code, 401)
  t.equal((await login({ link: 'made.up' })).code, 401)
  t.equal((await login({ token: 'made.up.token' })).code, 401)
  t.equal((await login({ kiosk: '000000000000.secret' })).code, 401)
  t.equal((await login({})).code, 401)
})

test('a link of an administrator begins one session with its rights', async (t) => {
  const { ask, login, loginAs } = await aDashboard(t)
  const { code, cookie, headers, link } = await loginAs(administrator)
  t.equal(code, 204)
  t.match(headers['set-cookie']?.[0], /^__Host-bramble-session=.+; Secure; HttpOnly; SameSite=Strict$/)
  t.match(headers['content-security-policy'], "default-src 'none'")
  t.equal((await login({ link })).code, 401, 'the link was used')
  t.match(JSON.parse((await ask('GET', '/ui/api/session', { cookie })).text), {
    user: 'kubernetes-admin',
    caHash: 'sha256:00',
  })
  t.equal((await ask('GET', '/api/v1/nodes', { cookie })).code, 200, 'it is good for the whole API')
})

test('a session has only the rights of its user', async (t) => {
  const { ask, loginAs } = await aDashboard(t)
  const { cookie } = await loginAs(viewer)
  t.equal((await ask('GET', '/api/v1/nodes', { cookie })).code, 403)
  t.equal((await ask('GET', '/ui/api/doctor?node=pi-1', { cookie })).code, 403)
  t.equal((await ask('DELETE', '/ui/api/sessions/000000000000', { cookie })).code, 403)
  const machine = { user: 'system:node:pi-1', groups: ['system:nodes'] }
  t.equal((await ask('POST', '/ui/api/links', { as: machine })).code, 403, 'a machine has none')
})

test('a session opens no page that others have written', async (t) => {
  const { loginAs, ask } = await aDashboard(t)
  const { cookie } = await loginAs(administrator)
  for (const path of ['/api/v1/namespaces/default/pods/x/proxy/', '/api/v1/nodes/pi-1/proxy/logs/']) {
    const { code, text } = await ask('GET', path, { cookie })
    t.equal(code, 403)
    t.match(text, /kubectl port-forward/)
  }
  t.equal((await ask('GET', '/api/v1/namespaces/default/services/x/proxy', { cookie })).code, 403)
})

test('a page asks what it may do as kubectl auth can-i does', async (t) => {
  const { ask, loginAs } = await aDashboard(t)
  const mayDelete = async (cookie: string) => {
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb: 'delete', resource: 'pods' } },
    }
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    const { text } = await ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      cookie,
      body,
      headers,
    })
    return JSON.parse(text).status.allowed
  }
  t.equal(await mayDelete((await loginAs(administrator)).cookie), true)
  t.equal(await mayDelete((await loginAs(viewer)).cookie), false)
})

test('a page of another site cannot use a session', async (t) => {
  const { ask, loginAs } = await aDashboard(t)
  const { cookie } = await loginAs(administrator)
  const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  t.equal((await ask('GET', '/api/v1/nodes', { cookie, headers: foreign })).code, 403)
  t.equal((await ask('POST', '/ui/api/logout', { cookie, headers: foreign })).code, 403)
  t.equal((await ask('POST', '/ui/api/logout', { cookie, headers: { 'x-bramble-csrf': undefined } })).code, 403)
  t.equal((await ask('POST', '/ui/api/login', { body: { link: 'x' }, headers: foreign })).code, 403)
  t.equal((await ask('POST', '/ui/api/logout', { cookie })).code, 204)
  t.equal((await ask('GET', '/api/v1/nodes', { cookie })).code, 401)
})

test('the stream shows the cards of the fleet, their changes, and only what the identity may list', async (t) => {
  const bound = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'viewers' }
  const binding: ClusterRoleBinding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'viewers' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [bound],
  }
  const { store, loginAs, follow, sessions } = await aDashboard(t, [binding])
  const node = await store.create('nodes', aNode({ name: 'pi-1', ready: 'True' }))
  await store.create('pods', aPod({ name: 'web', nodeName: 'pi-1' }))
  const { cookie } = await loginAs(administrator)
  const page = follow(cookie)
  await page.seen((updates) => updates.some(({ complete }) => complete))
  t.match(page.updates[0], { reset: { nodes: true, pods: true } })
  const cards = page.updates.flatMap(({ nodes }) => nodes?.put ?? [])
  t.match(cards, [{ name: 'pi-1', state: 'ready', pods: 1 }])
  t.match(
    page.updates.flatMap(({ pods }) => pods?.put ?? []),
    [{ name: 'web', node: 'pi-1' }],
  )

  const lost = {
    type: 'Ready',
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: 'The connection to the node was lost.',
  } as const
  await store.updateStatus('nodes', { ...node, status: { ...node.status, conditions: [lost] } })
  await store.delete('pods', { namespace: 'default', name: 'web' })
  await page.seen((updates) => updates.some(({ pods }) => pods?.gone?.includes('default/web')))
  t.match(page.updates.flatMap(({ nodes }) => nodes?.put ?? []).at(-1), {
    state: 'lost',
    why: 'The connection to the node was lost.',
    pods: 0,
  })

  const limited = follow((await loginAs(viewer)).cookie)
  await limited.seen((updates) => updates.some(({ complete }) => complete))
  t.equal(limited.updates[0]?.reset?.nodes, false)
  t.same(
    limited.updates.flatMap(({ nodes }) => nodes?.put ?? []),
    [],
  )
  for (const { id } of sessions.list()) sessions.end(id)
  await Promise.all([page.ended, limited.ended])
})

test('a revoked session is out at once, its streams too; a user revokes own sessions only', async (t) => {
  const { ask, loginAs, follow } = await aDashboard(t)
  const { cookie } = await loginAs(viewer)
  const other = await loginAs(administrator)
  const page = follow(cookie)
  await page.seen((updates) => updates.length > 0)
  const list = async (cookie: string) => JSON.parse((await ask('GET', '/ui/api/sessions', { cookie })).text).items
  t.match(await list(cookie), [{ user: 'vera', isOwn: true }])
  const [{ id }] = await list(cookie)
  t.equal((await list(other.cookie)).length, 2)
  t.equal((await ask('DELETE', `/ui/api/sessions/${id}`, { cookie: other.cookie })).code, 204)
  await page.ended
  t.equal((await ask('GET', '/ui/api/session', { cookie })).code, 401)
})

test('a kiosk link shows the fleet, changes nothing, and ends with its Secret', async (t) => {
  const { store, ask, login, follow } = await aDashboard(t)
  const digest = secretDigest('secret').toString('base64')
  const { stringData = {}, ...secret } = encodeKioskLink({ id: '0123456789ab', digest, description: 'hall' })
  const data = Object.fromEntries(
    Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  )
  await store.create('secrets', { ...secret, data })
  t.equal((await login({ kiosk: '0123456789ab.other' })).code, 401)
  const { cookie } = await login({ kiosk: '0123456789ab.secret' })
  t.match(JSON.parse((await ask('GET', '/ui/api/session', { cookie })).text), { isKiosk: true })
  t.equal((await ask('GET', '/api/v1/nodes', { cookie })).code, 200)
  t.equal((await ask('GET', '/api/v1/secrets', { cookie })).code, 403)
  t.equal((await ask('DELETE', '/api/v1/nodes/pi-1', { cookie })).code, 403)
  t.equal((await ask('POST', '/ui/api/links', { cookie })).code, 403)
  const page = follow(cookie)
  await page.seen((updates) => updates.some(({ complete }) => complete))
  await store.delete('secrets', { namespace: 'kube-system', name: 'bramble-kiosk-0123456789ab' })
  await page.ended
  t.equal((await ask('GET', '/ui/api/session', { cookie })).code, 401)
})

test('the stream has one path: below another one it would hold a seat of its priority level', async (t) => {
  const { ask, loginAs } = await aDashboard(t)
  const { cookie } = await loginAs(administrator)
  for (const path of ['/ui/api/stream/', '/ui/api/stream/x', '/ui/api/sessions/0/1', '/ui/api/session/x']) {
    t.equal((await ask('GET', path, { cookie })).code, 404, path)
  }
})

test('one address has few attempts to log in', async (t) => {
  const { login } = await aDashboard(t)
  const codes: number[] = []
  for (let attempt = 0; attempt < 22; attempt++) codes.push((await login({ link: 'made.up' })).code)
  t.same(
    codes.slice(0, 20),
    Array.from({ length: 20 }, () => 401),
  )
  t.equal(codes.at(-1), 429)
})

test('a login that is longer than any proof is not parsed', async (t) => {
  const { login } = await aDashboard(t)
  t.match(await login({ token: 'x'.repeat(20_000) }), { code: 413, text: /limit of a login is 16384 bytes/ })
  t.equal((await login({ token: 'x'.repeat(10_000) })).code, 401)
})
