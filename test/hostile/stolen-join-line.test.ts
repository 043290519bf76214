/**
 * A thief with the line of `token create --control-plane`, which makes a machine another controller. With a part of it, or after its time, it
 * has nothing. A thief that uses all of it before the machine that it is for has the fleet: then that machine is refused.
 */
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { signingRequest, signingRequestsPath } from '../../agent/join/certificate-request.ts'
import { newKey } from '../../certs/authority.ts'
import { noEtcd as skip } from '../support/etcd.ts'
import { agentCommand, type Controller } from '../support/fleet.ts'
import { startReplicas } from '../support/replicas.ts'
import { eventually } from '../support/wait.ts'
import { unnoticedBy } from './support/attacked-fleet.ts'
import { type ApiAttacker, adminOf, apiAttacker } from './support/clients.ts'

const secrets = '/api/v1/namespaces/kube-system/secrets'

type Line = {
  /** What follows `bramble-controller`. */
  readonly words: readonly string[]
  readonly id: string
  readonly token: string
  readonly bundle: string
}

async function newLine(controller: Controller, ...options: readonly string[]): Promise<Line> {
  const made = await controller.command(
    'token',
    'create',
    '--control-plane',
    '--data-dir',
    controller.dataDir,
    ...options,
  )
  if (made.code !== 0) throw new Error(made.stderr)
  const words = made.stdout.trim().split(' ').slice(1)
  const token = words[words.indexOf('--token') + 1] ?? ''
  const [id = ''] = token.split('.')
  return { words, id, token, bundle: `${secrets}/bramble-control-plane-${id}` }
}

/** The line with another value of this option. */
function changed({ words }: Line, option: string, value: string): readonly string[] {
  const at = words.indexOf(option) + 1
  return words.map((word, i) => (i === at ? value : word))
}

test('a thief with the line that makes a machine a controller', { skip, timeout: 300_000 }, async (t) => {
  const { controllers, folder } = await startReplicas(t, { count: 1 })
  const [controller] = controllers
  if (controller === undefined) throw new Error('There is one controller')
  const { ca = '', url } = adminOf(await readFile(controller.kubeconfig, 'utf8'))
  const holder = (token: string) => {
    const api = apiAttacker(url, { ca }, { token })
    t.teardown(async () => api.close())
    return api
  }
  let places = 0
  const joined = async (words: readonly string[]) => {
    const place = join(folder, `thief-${places++}`)
    const outcome = await controller.command(...words, '--data-dir', place, '--config', `${place}.yaml`)
    return { ...outcome, files: await readdir(place).catch(() => []) }
  }
  const refusal = { code: 1, files: [] }

  await t.test(
    'with the token and without the key has an encrypted bundle, and no right to anything else',
    async (t) => {
      const line = await newLine(controller)
      const other = await newLine(controller)
      await unnoticedBy(t, controller.kubeconfig, () => triesRights(t, controller, holder(line.token), { line, other }))
      const guess = changed(line, '--certificate-key', randomBytes(32).toString('hex'))
      t.match(await joined(guess), { ...refusal, stderr: /The certificate key is not the one that was printed/ })
    },
  )

  await t.test('with a key of one line and the token of another one opens neither', async (t) => {
    const [one, two] = [await newLine(controller), await newLine(controller)]
    const mixed = changed(one, '--token', two.token)
    t.match(await joined(mixed), { ...refusal, stderr: /The certificate key is not the one that was printed/ })
    t.equal((await joined(one.words)).code, 0, 'the line itself is good')
  })

  await t.test('is refused once the line was used, and nothing of it is left', async (t) => {
    const line = await newLine(controller)
    const thief = holder(line.token)
    t.equal((await joined(line.words)).code, 0)
    await isOver(t, controller, { line, thief, joined })
  })

  await t.test('is refused once the token was deleted', async (t) => {
    const line = await newLine(controller)
    const thief = holder(line.token)
    t.equal((await thief.send('GET', line.bundle)).status, 200)
    const deleted = await controller.command('token', 'delete', line.id, '--kubeconfig', controller.kubeconfig)
    t.equal(deleted.code, 0, deleted.stderr)
    await isOver(t, controller, { line, thief, joined })
  })

  await t.test('is refused once the line has expired', async (t) => {
    const line = await newLine(controller, '--ttl', '2s')
    const thief = holder(line.token)
    await eventually('it has expired', async () => (await thief.send('GET', line.bundle)).status === 401)
    await isOver(t, controller, { line, thief, joined })
  })

  await t.test('who was first leaves the owner without a use of the line', async (t) => {
    const line = await newLine(controller)
    t.equal((await joined(line.words)).code, 0, 'as the owner must expect of all that it gives away')
    const owner = await joined(line.words)
    t.match(owner, { ...refusal, stderr: /^Cannot join: .*Create a new token/ })
  })
})

async function triesRights(
  t: Test,
  { kubectl }: Controller,
  thief: ApiAttacker,
  { line, other }: { readonly line: Line; readonly other: Line },
): Promise<void> {
  const bundle = await thief.send('GET', line.bundle)
  t.equal(bundle.status, 200)
  const sealed = Buffer.from(JSON.parse(bundle.text).data.bundle, 'base64').toString('latin1')
  t.notMatch(sealed, /PRIVATE|BEGIN|etcd|authority/)
  const reads = [
    ...[other.bundle, `${secrets}/bootstrap-token-${line.id}`, secrets, '/api/v1/nodes'],
    ...[
      '/api/v1/namespaces/default/secrets',
      '/api/v1/namespaces/kube-system/configmaps',
      signingRequestsPath,
      '/metrics',
    ],
  ]
  for (const path of reads) t.equal((await thief.send('GET', path)).status, 403, `GET ${path}`)
  // Tokens of machines that join have no watches.
  t.equal((await thief.send('GET', `${secrets}?watch=1`)).status, 429)
  const writes = [
    ['DELETE', line.bundle],
    ['DELETE', other.bundle],
    ['DELETE', `${secrets}/bootstrap-token-${other.id}`],
    ['DELETE', secrets],
    ['PATCH', `${secrets}/bootstrap-token-${line.id}`],
    ['PUT', line.bundle],
    ['POST', secrets],
    ['POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles'],
    ['POST', '/api/v1/nodes'],
  ] as const
  for (const [method, path] of writes) {
    const { status } = await thief.sendJson(
      method,
      path,
      { metadata: { name: 'x' } },
      { 'content-type': bodyOf(method) },
    )
    t.equal(status, 403, `${method} ${path}`)
  }
  // It is a token of a machine that joins, to Kubernetes: here it makes no node.
  const request = signingRequest('thief', newKey(), { machineID: 'e'.repeat(32) })
  t.equal((await thief.sendJson('POST', signingRequestsPath, request)).status, 403, 'no certificate of a node')
  const { status } = await thief.send('GET', secrets, { headers: { 'impersonate-user': 'kubernetes-admin' } })
  t.equal(status, 403, 'no other user')
  const server = line.words[1] ?? ''
  const hash = line.words[line.words.indexOf('--ca-hash') + 1] ?? ''
  const joining = ['join', server, '--token', line.token, '--ca-hash', hash, '--no-run', '--node-name', 'thief']
  const outcome = await agentCommand(...joining, '--data-dir', join('/tmp', `bramble-thief-${line.id}`))
  t.not(outcome.code, 0, 'no machine joins with it')
  t.equal(await kubectl('get', 'nodes,csr', '-o', 'name'), '')
}

function bodyOf(method: string): string {
  return method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
}

async function isOver(
  t: Test,
  { tryKubectl }: Controller,
  {
    line,
    thief,
    joined,
  }: {
    readonly line: Line
    readonly thief: ApiAttacker
    readonly joined: (words: readonly string[]) => Promise<{ readonly code: number; readonly stderr: string }>
  },
): Promise<void> {
  t.equal((await thief.send('GET', line.bundle)).status, 401, 'at once')
  t.match(await joined(line.words), { code: 1, files: [], stderr: /^Cannot join: .*Create a new token/ })
  const name = `bramble-control-plane-${line.id}`
  const kinds = ['secret', 'role', 'rolebinding'].map((kind) => `${kind}/${name}`)
  const left = async () =>
    (
      await tryKubectl(
        '-n',
        'kube-system',
        'get',
        ...kinds,
        `secret/bootstrap-token-${line.id}`,
        '--ignore-not-found',
        '-o',
        'name',
      )
    ).stdout
  // What has expired is looked for every minute.
  await eventually('the bundle and its rights are gone', async () => (await left()) === '', { withinMs: 180_000 })
}
