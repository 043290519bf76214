/** The holder of a bootstrap token, which may request the certificate of a new machine and nothing else. */
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { signingRequest, signingRequestsPath } from '../../agent/join/certificate-request.ts'
import { newKey } from '../../certs/authority.ts'
import { eventually } from '../support/wait.ts'
import { type AttackedFleet, attackedFleet, honest } from './support/attacked-fleet.ts'
import { type ApiAttacker, adminOf, apiAttacker } from './support/clients.ts'

test('an attacker with a bootstrap token', async (t) => {
  const fleet = await attackedFleet(t)
  const { ca = '' } = adminOf(await readFile(fleet.controller.kubeconfig, 'utf8'))
  const holder = async () => {
    const line = await fleet.controller.joinLine()
    const token = line[line.indexOf('--token') + 1] ?? ''
    const api = apiAttacker(fleet.controller.apiUrl, { ca }, { token })
    t.teardown(async () => api.close())
    return api
  }
  const api = await holder()

  await t.test('reads nothing of the fleet', async (t) => {
    for (const path of [
      '/api/v1/nodes',
      `/api/v1/nodes/${honest}`,
      '/api/v1/pods',
      '/api/v1/namespaces/kube-system/secrets',
      '/api/v1/events',
      '/metrics',
      signingRequestsPath,
      `${signingRequestsPath}?watch=true`,
    ]) {
      const { status, text } = await api.send('GET', path)
      t.ok(status === 403 || status === 429, `${path}: ${status}`)
      t.notMatch(text, /BEGIN|machine-id/)
    }
  })

  await t.test('reads only the requests that it made', async (t) => {
    const other = await holder()
    const theirs = await ask(other, 'a-machine-of-others')
    t.equal((await other.send('GET', theirs.path)).status, 200)
    t.equal((await api.send('GET', theirs.path)).status, 403)
    t.ok((await api.send('DELETE', theirs.path)).status >= 403)
    const { status } = await api.sendJson('PUT', `${theirs.path}/approval`, theirs.object)
    t.equal(status, 403)
  })

  await t.test('does not get the name of a live node', async (t) => {
    const machine = await secretsOfTheMachine(fleet)
    t.ok(machine.length > 0, 'the fleet has the hardware identity of its node')
    const first = await ask(api, honest)
    const refusal = await settledRequest(api, first.path)
    t.notOk(refusal.status?.certificate, 'it gets no certificate')
    for (const word of machine) t.notMatch(JSON.stringify(refusal), word, 'and does not learn who has the name')
    // It repeats the machine's own identity all the same: an attacker may have it from elsewhere.
    const annotations = await hardwareOf(fleet)
    const second = await ask(api, honest, annotations)
    t.notOk((await settledRequest(api, second.path)).status?.certificate, 'its hardware identity proves nothing')
  })

  await t.test('does not get another identity than that of a node', async (t) => {
    for (const [commonName, organization, signer] of [
      ['kubernetes-admin', 'system:masters', 'kubernetes.io/kube-apiserver-client'],
      ['system:node:fresh', 'system:masters', 'kubernetes.io/kube-apiserver-client-kubelet'],
      ['system:admin', 'system:nodes', 'kubernetes.io/kube-apiserver-client-kubelet'],
    ] as const) {
      const { createCSR } = await import('../../certs/csr.ts')
      const pem = createCSR({ commonName, organization, key: newKey() })
      const { object } = await prepared('fresh')
      const asked = await api.sendJson('POST', signingRequestsPath, {
        ...object,
        metadata: { name: `of-${commonName.replaceAll(':', '-')}-${organization.replaceAll(':', '-')}` },
        spec: { ...object.spec, request: Buffer.from(pem).toString('base64'), signerName: signer },
      })
      if (asked.status >= 400) continue
      const made = JSON.parse(asked.text)
      const kept = await settledRequest(api, `${signingRequestsPath}/${made.metadata.name}`)
      t.notOk(kept.status?.certificate, `${commonName} in ${organization} is not signed`)
    }
  })

  await t.test('cannot claim another identity', async (t) => {
    const { object } = await prepared('fresh-2')
    const spec = { ...object.spec, username: 'system:node:pi-1', groups: ['system:masters'], uid: 'x' }
    const { status, text } = await api.sendJson('POST', signingRequestsPath, { ...object, spec })
    if (status < 400) {
      const made = JSON.parse(text).spec
      t.match(made.username, /^system:bootstrap:/)
      t.notMatch(made.groups, 'system:masters')
    }
  })

  await t.test('does not get one name for two machines that ask in one moment', async (t) => {
    const [one, two] = [await holder(), await holder()]
    const asked = await Promise.all([one, two, one, two].map(async (by) => ({ by, ...(await ask(by, 'wanted')) })))
    const settled = await Promise.all(asked.map(({ by, path }) => settledRequest(by, path)))
    const isApproved = ({ status }: Request) => status?.conditions?.some(({ type }) => type === 'Approved')
    t.equal(settled.filter(isApproved).length, 1)
  })

  await t.test('has no access once the token is deleted, and gets no name that becomes free later', async (t) => {
    const line = await fleet.controller.joinLine()
    const token = line[line.indexOf('--token') + 1] ?? ''
    const thief = apiAttacker(fleet.controller.apiUrl, { ca }, { token })
    t.teardown(async () => thief.close())
    const absent = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'absent' } }
    await fleet.admin.sendJson('POST', '/api/v1/nodes', absent)
    const { path } = await ask(thief, 'absent')
    await eventually('the request waits', async () => (await thief.send('GET', path)).text.includes('NodeExists'))
    const [id = ''] = token.split('.')
    await fleet.admin.send('DELETE', `/api/v1/namespaces/kube-system/secrets/bootstrap-token-${id}`)
    t.equal((await thief.send('GET', path)).status, 401)
    t.equal((await ask(thief, 'another')).status, 401)
    await fleet.admin.send('DELETE', '/api/v1/nodes/absent')
    const denied = async () => (await fleet.admin.send('GET', path)).text
    await eventually('the request is denied', async () => (await denied()).includes('TokenEnded'))
    t.notMatch(JSON.parse(await denied()), { status: { certificate: String } })
  })

  await t.test('is not found by trying secrets, and refusals show nothing of a token', async (t) => {
    const line = await fleet.controller.joinLine()
    const [id = ''] = (line[line.indexOf('--token') + 1] ?? '').split('.')
    const answers = new Map<string, number>()
    const tries = Array.from(
      { length: 400 },
      (_, at) => `${at % 2 === 0 ? id : 'abcdef'}.${String(at).padStart(16, '0')}`,
    )
    await fleet.unnoticed(t, async () => {
      for (const guess of tries) {
        const stranger = apiAttacker(fleet.controller.apiUrl, { ca }, { token: guess })
        const { status, text } = await stranger.send('GET', '/api')
        stranger.close()
        const message: string = JSON.parse(text).message
        const shown = message.replace(/token \w{6} /, '').replace(/the time here is \S+/, '')
        answers.set(`${status} ${shown}`, (answers.get(`${status} ${shown}`) ?? 0) + 1)
      }
    })
    t.comment(JSON.stringify([...answers]))
    t.same(
      [...answers.keys()].map((one) => one.slice(0, 3)).sort(),
      ['401', '429'],
      'one sentence for every invalid token, until there are too many',
    )
  })

  await t.test('cannot occupy the controller with bodies', (t) =>
    fleet.unnoticed(t, async () => {
      for (const [type, body] of expensiveBodies()) {
        const answer = api.send('POST', signingRequestsPath, { body, headers: { 'content-type': type } })
        const status = await answer.then((one) => one.status).catch(() => 413)
        t.ok(status >= 400 && status < 500, `${type}, ${body.length} bytes: ${status}`)
      }
    }),
  )

  await t.test('cannot fill the store with requests', (t) =>
    fleet.unnoticed(t, async () => {
      const statuses = new Map<number, number>()
      for (let batch = 0; batch < 20; batch++) {
        const asked = Array.from({ length: 25 }, (_, index) => ask(api, `flood-${batch}-${index}`))
        for (const { status } of await Promise.all(asked)) statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
      t.comment(`answers: ${JSON.stringify([...statuses])}`)
      t.ok(
        [...statuses.keys()].some((status) => status === 403 || status === 429),
        'most of them are refused',
      )
      t.ok((statuses.get(201) ?? 0) <= 200, `${statuses.get(201)} of 500 requests were kept`)
    }),
  )

  await t.test('the honest node is the one it was', async (t) => {
    const { text } = await fleet.admin.send('GET', `/api/v1/nodes/${honest}`)
    const ready = JSON.parse(text).status.conditions.find(({ type }: { type: string }) => type === 'Ready')
    t.equal(ready.status, 'True')
  })
})

type Request = {
  readonly metadata: { readonly name: string }
  readonly status?: { readonly certificate?: string; readonly conditions?: readonly { readonly type: string }[] }
}

async function prepared(nodeName: string) {
  return { object: signingRequest(nodeName, newKey(), { machineID: 'e'.repeat(32) }) }
}

async function ask(api: ApiAttacker, nodeName: string, annotations?: { readonly [name: string]: string }) {
  const { object } = await prepared(nodeName)
  const sent = annotations === undefined ? object : { ...object, metadata: { ...object.metadata, annotations } }
  const { status, text } = await api.sendJson('POST', signingRequestsPath, sent)
  return { status, text, object: sent, path: `${signingRequestsPath}/${object.metadata.name}` }
}

/** Once the controller has decided; one that waits for an operator is given as it is after a while. */
async function settledRequest(api: ApiAttacker, path: string): Promise<Request> {
  const read = async (): Promise<Request> => JSON.parse((await api.send('GET', path)).text)
  const decided = ({ status }: Request) => status?.certificate !== undefined || (status?.conditions ?? []).length > 0
  return eventually('a decision', async () => decided(await read()) && read(), { withinMs: 5_000 }).catch(read)
}

async function hardwareOf({ admin }: AttackedFleet): Promise<{ readonly [name: string]: string }> {
  const node = JSON.parse((await admin.send('GET', `/api/v1/nodes/${honest}`)).text)
  const name = 'bramble.dev/hardware-identity'
  return { [name]: node.metadata.annotations[name] }
}

/** What would help an attacker to pass for the machine. */
async function secretsOfTheMachine(fleet: AttackedFleet): Promise<readonly string[]> {
  const [identity = '{}'] = Object.values(await hardwareOf(fleet))
  return Object.values<unknown>(JSON.parse(identity)).flatMap((value) => (typeof value === 'string' ? [value] : []))
}

function expensiveBodies(): readonly (readonly [type: string, body: string])[] {
  const keys = (count: number) => Array.from({ length: count }, (_, index) => `key${index}`)
  return [
    [
      'application/yaml',
      keys(20_000)
        .map((key) => `${key}: 1`)
        .join('\n'),
    ],
    ['application/yaml', `a: [${'{b: 1},'.repeat(20_000)}]`],
    [
      'application/yaml',
      `${'a: &a [1,2]\n'}${keys(5_000)
        .map((key) => `${key}: *a`)
        .join('\n')}`,
    ],
    ['application/json', JSON.stringify(Object.fromEntries(keys(50_000).map((key) => [key, key])))],
    ['application/json', '{"a":'.repeat(100_000)],
    [
      'application/json',
      JSON.stringify({ metadata: { labels: Object.fromEntries(keys(20_000).map((key) => [`!${key}`, key])) } }),
    ],
    ['application/vnd.kubernetes.protobuf', 'k8s\0'.repeat(200_000)],
  ]
}
