/**
 * An attacker after a restore, while the controller accepts checkpoints of nodes. It has two machines: `mallory`, a node since before
 * the backup, and one that joins with a bootstrap token after the restore. Neither may read a Secret that it did not have before.
 */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { signingRequestsPath } from '../../agent/join/certificate-request.ts'
import { type Controller, joinFleet } from '../support/fleet.ts'
import { podManifest } from '../support/manifests.ts'
import { image, listening } from '../support/pods.ts'
import { eventually } from '../support/wait.ts'
import { type AttackedFleet, attackedFleet, honest, mallory, malloryOf } from './support/attacked-fleet.ts'
import {
  type Answer,
  type ApiAttacker,
  apiAttacker,
  type ClientIdentity,
  connectPacket,
  nodeOfFolder,
  openTls,
  subscribePacket,
} from './support/clients.ts'

const newcomer = 'newcomer'
/** Secret `kept` and pod `web` are in the backup. Secret `lost` and pod `late` are not: only the honest node has them. */
const contents = { kept: 'kept-by-the-honest-node', lost: 'lost-but-for-the-honest-node' }
type SecretName = keyof typeof contents
const honestContent = new RegExp(
  Object.values(contents)
    .flatMap((one) => [one, base64(one)])
    .join('|'),
)
const mergePatch = { 'content-type': 'application/merge-patch+json' }

test('an attacker after a restore', async (t) => {
  const fleet = await attackedFleet(t)
  const before = await malloryOf(fleet)
  await register(before.api, mallory)
  before.api.close()
  await runWithSecret(fleet.controller, 'web', 'kept')
  const backup = await backupOf(fleet)
  await runWithSecret(fleet.controller, 'late', 'lost')
  const running = await containersOf(fleet)
  t.equal(running.length, 4, 'two pods, of one container each')
  for (const agent of fleet.agents) await agent.stop()
  const scene = await sceneOf(t, fleet, await restored(fleet, backup))

  await t.test('gives nothing to a node that joined since, and accepts nothing from it', (t) =>
    newcomerIsRefused(t, scene),
  )
  await t.test('reads no Secret by the pods that an earlier node claims', (t) => liesBeforeHonest(t, scene))

  const again = await fleet.startReady(honest)
  await Promise.all(
    again.map((agent) => agent.logged('Checkpoint sent to a controller that lacked the pods of this node')),
  )
  await scene.receivedByHonest('second')
  t.same(await containersOf(fleet), running, 'the honest pods are not restarted')

  await t.test('leaves the honest node what it has, and the operator the decision', (t) => honestStands(t, scene))
  await t.test('reads and changes nothing after the honest node has reported', (t) =>
    fleet.unnoticed(t, () => liesAfterHonest(t, scene)),
  )
  await t.test('is given nothing by the decision of the operator', (t) => operatorDecides(t, scene))
  t.same(await containersOf(fleet), running, 'the honest pods ran all the time')
})

/** No backup: only the key of the authority is left, and what the nodes have. */
test('an attacker after the loss of the whole store', async (t) => {
  const fleet = await attackedFleet(t)
  const before = await malloryOf(fleet)
  await register(before.api, mallory)
  before.api.close()
  await runWithSecret(fleet.controller, 'late', 'lost')
  const running = await containersOf(fleet)
  for (const agent of fleet.agents) await agent.stop()
  const controller = await withoutStore(fleet)
  const liar = await attackerOf(t, fleet, mallory)
  const checkpoints = async (...words: readonly string[]) =>
    (await controller.command('checkpoints', ...words, '--data-dir', controller.dataDir)).stdout

  await t.test('keeps what it makes up to itself', async (t) => {
    const pods = [claim(mallory, 'made-up', { secrets: ['lost', 'invented'] })]
    const secrets = [secretOf('lost', 'forged'), secretOf('invented', 'forged')]
    t.equal((await liar.deliver({ pods, secrets, complete: true, hasAllPods: true })).status, 201)
    for (const name of ['lost', 'invented'])
      t.match(await checkpoints(), new RegExp(`without a proof[^]*secret default/${name} +mallory`))
    const described = await controller.kubectl('describe', 'node', mallory)
    t.match(described, /CheckpointNotProven .* Node mallory has not proven .*Secret default\/invented/)
    const annotations = await controller.kubectl('describe', 'secret', 'invented')
    t.match(annotations, /bramble\.dev\/unproven-from: mallory/)
  })

  await t.test('does not keep an honest node from what it has', async (t) => {
    const again = await fleet.startReady(honest)
    await Promise.all(
      again.map((agent) => agent.logged('Checkpoint sent to a controller that lacked the pods of this node')),
    )
    t.same((await stateOf(fleet.admin)).secrets, { lost: base64(contents.lost), invented: base64('forged') })
    // The scheduler and new pods do not wait for an operator either.
    await runPod(controller, 'another', honest, 'lost')
    t.same(await containersOf(fleet), running, 'the honest pods are not restarted')
    t.notMatch(await checkpoints(), /secret default\/lost +mallory/)
  })

  await t.test('gives pods of others nothing before an operator accepts it', async (t) => {
    await controller.kubectlWith(manifestOf('poisoned', honest, 'invented'), 'create', '-f', '-')
    const reason = ['get', 'pod', 'poisoned', '-o', 'jsonpath={.status.containerStatuses[0].state.waiting.reason}']
    await eventually('it waits', async () => (await controller.kubectl(...reason)) === 'CreateContainerConfigError')
    t.match(await checkpoints('refuse', 'secret', 'default/invented'), /refused and deleted/)
    await controller.kubectl('create', 'secret', 'generic', 'invented', '--from-literal=password=own')
    await controller.kubectl('wait', '--for=condition=Ready', 'pod/poisoned', '--timeout=80s')
    t.equal((await liar.deliver({ secrets: [secretOf('invented', 'own')] })).status, 409)
    await readsNothing(t, liar, ['lost', 'invented'])
  })
})

async function withoutStore({ controller, controllerAgain }: AttackedFleet): Promise<Controller> {
  await controller.program.stop()
  for (const name of await readdir(controller.dataDir))
    if (name.startsWith('store.db')) await rm(join(controller.dataDir, name))
  return controllerAgain()
}

type Attacker = {
  readonly name: string
  readonly api: ApiAttacker
  /** All that the broker has sent it. */
  received(): string
  deliver(part: object, node?: string): Promise<Answer>
}

type Scene = {
  readonly controller: Controller
  readonly admin: ApiAttacker
  /** Joined since the restore, and before the backup. */
  readonly newcomer: Attacker
  readonly liar: Attacker
  /** Secret kube-system/bootstrap-token-… of a token that is valid. */
  readonly token: string
  /** The output of `bramble-controller checkpoints`. */
  checkpoints(): Promise<string>
  /** Resolves when the honest node runs another pod, and so has acted on its desired pods as they are now. */
  receivedByHonest(name: string): Promise<void>
}

async function newcomerIsRefused(t: Test, scene: Scene) {
  const { admin, newcomer, checkpoints } = scene
  await refusesNewcomer(t, scene)
  const node = `/api/v1/nodes/${newcomer.name}`
  const unmarked = { metadata: { annotations: { 'bramble.dev/learnt-by': null } } }
  t.equal(
    (await newcomer.api.sendJson('PATCH', node, unmarked, mergePatch)).status,
    403,
    'it cannot have its checkpoint asked for',
  )
  t.equal((await newcomer.api.send('DELETE', node)).status, 403, 'nor register again')
  t.equal((await admin.sendJson('PATCH', node, unmarked, mergePatch)).status, 200)
  const asked = await newcomer.deliver({ pods: [claim(newcomer.name, 'made-up')] })
  t.match(
    [asked.status, asked.text],
    [409, /only from nodes that joined before the restore/],
    'not even an operator can',
  )
  await refusesNewcomer(t, scene)
  t.match(await checkpoints(), /Not done: mallory, pi-1\./, 'it is not waited for')
}

/** Whatever its checkpoint has, and whatever it asks for. */
async function refusesNewcomer(t: Test, { admin, newcomer, token }: Scene) {
  const before = await stateOf(admin)
  const web = await podOf(admin, 'web')
  const taken = { ...web, spec: { ...Object(web['spec']), nodeName: newcomer.name } }
  const inSystem = { namespace: 'kube-system', secrets: [token] }
  for (const [what, part] of [
    ['made-up pods', { pods: [claim(newcomer.name, 'made-up'), claim(newcomer.name, 'made-up', inSystem)] }],
    [
      'a pod of the honest node',
      { pods: [taken, { ...taken, metadata: { ...Object(web['metadata']), uid: 'other' } }] },
    ],
    ['forged Secrets', { secrets: [secretOf('kept', 'forged'), secretOf('lost', 'forged')] }],
    ['a forged token', { secrets: [secretOf(token, 'forged', 'kube-system')] }],
    ['everything', { pods: [claim(newcomer.name, 'made-up')], secrets: [secretOf('lost', 'forged')], complete: true }],
  ] as const) {
    const { status, text } = await newcomer.deliver(part)
    t.match([status, text], [409, /its checkpoint was already received/], what)
  }
  for (const other of [honest, mallory]) {
    const { status } = await newcomer.deliver({ pods: [claim(other, 'made-up')], complete: true }, other)
    t.equal(status, 403, `in the name of ${other}`)
  }
  await readsNothing(t, newcomer, [...Object.keys(contents), 'checkpoint-copy'])
  await readsNothing(t, newcomer, [token], 'kube-system')
  t.same(await stateOf(admin), before, 'no pod and no Secret is there because of it')
  await eventually('it receives its desired pods', () => /"pods":\[/.test(newcomer.received()))
  t.notMatch(newcomer.received(), /"(pods|secrets|configMaps)":\[[^\]]/, 'it is to run nothing')
}

/** The Secret that the backup has stands. Of the other one the node that reports first has its own content, and nothing else. */
async function liesBeforeHonest(t: Test, scene: Scene) {
  const { admin, liar, token } = scene
  const before = await stateOf(admin)
  t.equal(
    (await liar.deliver({ pods: [claim(honest, 'made-up')] }, honest)).status,
    403,
    'in the name of the honest node',
  )
  t.equal((await liar.deliver({ pods: [claim(honest, 'made-up')] })).status, 400, 'a pod of the honest node')

  const web = await podOf(admin, 'web')
  const taken = { ...web, spec: { ...Object(web['spec']), nodeName: liar.name } }
  const earlier = { ...Object(web['metadata']), uid: 'earlier', creationTimestamp: '2020-01-01T00:00:00Z' }
  const claims = await liar.deliver({
    pods: [
      claim(liar.name, 'made-up'),
      claim(liar.name, 'in-system', { namespace: 'kube-system', secrets: [token] }),
      taken,
      { ...taken, metadata: earlier },
    ],
  })
  t.equal(claims.status, 201)
  for (const [pod, because] of [
    ['kube-system/in-system', 'pods in this namespace are not accepted from checkpoints'],
    ['default/web', `a pod with that name is bound to node ${honest}`],
  ] as const) {
    t.match(claims.text, new RegExp(`Pod ${pod} [^;]*of node ${liar.name} was not restored: ${because}`))
  }
  // Equal content shows that a node had it. A node that sends several contents does not have it.
  const guessed = ['forged', 'guessed', contents.kept].map((content) => secretOf('kept', content))
  const lies = await liar.deliver({
    secrets: [...guessed, secretOf('lost', 'forged-first'), secretOf(token, 'forged', 'kube-system')],
  })
  t.match([lies.status, lies.text], [201, /Secret default\/kept of node mallory differs from the existing object/])
  t.notMatch(lies.text, /default\/lost|bootstrap-token/)
  await readsNothing(t, liar, ['kept', token])
  await readsNothing(t, liar, [token, ...(await copiesIn(admin))], 'kube-system')
  t.match(await contentRead(liar.api, 'lost'), 'forged-first', 'its own content')
  const { pods, secrets, tokens } = await stateOf(admin)
  t.same(pods, [...before.pods, `default/made-up uid-made-up ${liar.name}`].sort(), 'no pod but the claimed one')
  t.same(secrets, { ...before.secrets, lost: base64('forged-first') })
  t.same(tokens, before.tokens)
}

async function honestStands(t: Test, { controller, admin, checkpoints }: Scene) {
  const { pods, secrets } = await stateOf(admin)
  for (const name of ['web', 'late']) {
    t.ok(
      pods.some((pod) => pod.startsWith(`default/${name} `) && pod.endsWith(` ${honest}`)),
      `pod ${name}`,
    )
  }
  t.same(secrets, { kept: base64(contents.kept), lost: base64(contents.lost) }, 'what a controller has sent')
  const shown = await checkpoints()
  t.notMatch(shown, /without a proof|Conflicting/, 'nothing waits for an operator')
  t.match(shown, /default\/late +pi-1/, 'the pods that are not approved')
  t.match(shown, /default\/made-up +mallory/)
  t.match(shown, /checkpoint-\w+ +secrets default\/kept +mallory/, 'the content that was not accepted')
  t.match(shown, /checkpoint-\w+ +secrets default\/lost +mallory/)
  const events = await controller.kubectl('get', 'events', '--all-namespaces')
  for (const node of [honest, mallory])
    t.match(events, new RegExp(`CheckpointContradiction +node/${node} +Secret default/lost`))
  t.match(events, /CheckpointContradiction +node\/mallory +Secret default\/kept/)
  t.match(events, /CheckpointNotProven +node\/mallory +.* Secret default\/lost:/)
  t.match(events, /PodNotLearnt +node\/mallory +Pod kube-system\/in-system/)
  t.match(await controller.kubectl('describe', 'node', honest), /CheckpointContradiction/)
}

async function liesAfterHonest(t: Test, scene: Scene) {
  const { admin, liar, token } = scene
  const before = await stateOf(admin)
  const web = await podOf(admin, 'web')
  const later = {
    ...Object(web['metadata']),
    uid: 'later',
    creationTimestamp: new Date(Date.now() - 60_000).toISOString(),
  }
  const claims = await liar.deliver({
    pods: [{ ...web, metadata: later, spec: { ...Object(web['spec']), nodeName: liar.name } }],
  })
  t.match([claims.status, claims.text], [201, `a pod with that name is bound to node ${honest}`])
  const contradicting = [
    secretOf('kept', 'forged-later'),
    secretOf('kept', contents.kept),
    secretOf('lost', contents.lost),
  ]
  t.equal((await liar.deliver({ secrets: contradicting })).status, 201)
  t.equal((await liar.deliver({ complete: true, hasAllPods: true })).status, 201)
  const late = await liar.deliver({ secrets: contradicting })
  t.match([late.status, late.text], [409, /its checkpoint was already received/], 'once from each node')
  await eventually('it receives its desired pods', () => /"made-up"/.test(liar.received()))
  t.notMatch(liar.received(), honestContent)
  await readsNothing(t, liar, ['kept', token])
  await readsNothing(t, liar, [token, ...(await copiesIn(admin))], 'kube-system')
  t.equal(await contentRead(liar.api, 'lost'), '403')
  t.same(await stateOf(admin), before, 'pods and Secrets are what they were')
  await refusesNewcomer(t, scene)
}

/** As docs/recovery.md describes it. */
async function operatorDecides(t: Test, { controller, admin, newcomer, liar, receivedByHonest }: Scene) {
  t.equal((await controller.command('checkpoints', 'approve', honest, '--data-dir', controller.dataDir)).code, 0)
  t.same((await stateOf(admin)).secrets, { kept: base64(contents.kept), lost: base64(contents.lost) })
  await runPod(controller, 'third', honest, 'lost')
  await receivedByHonest('fourth')
  await readsNothing(t, liar, ['kept', 'lost'])
  // Its desired pods are published with all that changed before.
  for (const { name } of [liar, newcomer])
    await controller.kubectlWith(manifestOf(`for-${name}`, name), 'create', '-f', '-')
  for (const { name, received } of [liar, newcomer]) {
    await eventually(`${name} receives a pod`, () => received().includes(`"for-${name}"`))
    t.notMatch(received(), honestContent, `${name} was sent no content of a Secret of others`)
  }
}

/** By name, in lists and by watches. */
async function readsNothing(t: Test, { name: node, api }: Attacker, names: readonly string[], namespace = 'default') {
  const path = `/api/v1/namespaces/${namespace}/secrets`
  const one = (name: string) => `${path}?fieldSelector=metadata.name%3D${name}`
  const watch = 'watch=true&timeoutSeconds=1'
  for (const asked of [
    ...names.flatMap((name) => [`${path}/${name}`, one(name), `${one(name)}&${watch}`]),
    ...[path, `${path}?${watch}`, '/api/v1/secrets', `/api/v1/secrets?${watch}`],
  ]) {
    const { status, text } = await api.send('GET', asked)
    t.equal(status, 403, `${node} reads ${asked}`)
    t.notMatch(text, honestContent)
  }
}

async function contentRead(api: ApiAttacker, name: SecretName): Promise<string> {
  const { status, text } = await api.send('GET', `/api/v1/namespaces/default/secrets/${name}`)
  return status === 200 ? Buffer.from(JSON.parse(text).data.password, 'base64').toString() : `${status}`
}

type Document = { readonly [field: string]: unknown }

async function podOf(admin: ApiAttacker, name: string): Promise<Document> {
  return JSON.parse((await admin.send('GET', `/api/v1/namespaces/default/pods/${name}`)).text)
}

/** All pods, the content of the Secrets, and what the bootstrap tokens are. */
async function stateOf(admin: ApiAttacker) {
  const read = async (path: string) => JSON.parse((await admin.send('GET', path)).text).items
  const pods: readonly string[] = (await read('/api/v1/pods')).map(
    ({ metadata, spec }: Listed) => `${metadata.namespace}/${metadata.name} ${metadata.uid} ${spec.nodeName}`,
  )
  const secrets: readonly Listed[] = await read('/api/v1/secrets')
  const dataOf = (namespace: string, names: RegExp) =>
    secrets.filter(({ metadata }) => metadata.namespace === namespace && names.test(metadata.name))
  return {
    pods: [...pods].sort(),
    secrets: Object.fromEntries(dataOf('default', /./).map(({ metadata, data }) => [metadata.name, data['password']])),
    tokens: dataOf('kube-system', /^bootstrap-token-/).map(({ metadata, data }) => [metadata.name, data]),
  }
}

type Listed = {
  readonly metadata: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly spec: { readonly nodeName: string }
  readonly data: { readonly [key: string]: string }
}

async function copiesIn(admin: ApiAttacker): Promise<readonly string[]> {
  const path = '/api/v1/namespaces/kube-system/secrets?labelSelector=bramble.dev%2Fcheckpoint-copy'
  const { items } = JSON.parse((await admin.send('GET', path)).text)
  return items.map(({ metadata }: Listed) => metadata.name)
}

type Claim = { readonly namespace?: string; readonly secrets?: readonly string[] }

/** A pod that the node never had. */
function claim(nodeName: string, name: string, { namespace = 'default', secrets = ['kept', 'lost'] }: Claim = {}) {
  const volumes = secrets.map((secretName, index) => ({ name: `v-${index}`, secret: { secretName } }))
  const envFrom = secrets.map((secret) => ({ secretRef: { name: secret } }))
  const spec = { nodeName, volumes, imagePullSecrets: secrets.map((secret) => ({ name: secret })) }
  const pod = JSON.parse(podManifest({ name, image, spec, container: { envFrom } }))
  return { ...pod, metadata: { ...pod.metadata, namespace, uid: `uid-${name}` } }
}

function secretOf(name: string, content: string, namespace = 'default') {
  const metadata = { name, namespace }
  return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: { password: base64(content) } }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

function manifestOf(name: string, nodeName: string, secret?: string): string {
  const env = secret && [{ name: 'P', valueFrom: { secretKeyRef: { name: secret, key: 'password' } } }]
  const spec = { nodeName, automountServiceAccountToken: false, terminationGracePeriodSeconds: 1 }
  return podManifest({ name, image, command: listening, spec, ...(env && { container: { env } }) })
}

async function runPod(controller: Controller, name: string, node: string, secret?: SecretName) {
  await controller.kubectlWith(manifestOf(name, node, secret), 'create', '-f', '-')
  await controller.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=80s')
}

async function runWithSecret(controller: Controller, name: string, secret: SecretName) {
  await controller.kubectl('create', 'secret', 'generic', secret, `--from-literal=password=${contents[secret]}`)
  await runPod(controller, name, honest, secret)
}

/** Containers of the pods `web` and `late`, with their start times. */
async function containersOf({ docker }: AttackedFleet) {
  const all = await docker.docker.listContainers({ all: true })
  const own = all.filter(({ Labels }) => ['web', 'late'].includes(Labels['io.kubernetes.pod.name'] ?? ''))
  const inspected = await Promise.all(own.map(({ Id }) => docker.docker.getContainer(Id).inspect()))
  return inspected.map(({ Id, State }) => `${Id} ${State.Status} ${State.StartedAt}`).sort()
}

async function backupOf({ controller, folder }: AttackedFleet): Promise<string> {
  const { code, stderr } = await controller.command('backup', folder, '--data-dir', controller.dataDir)
  if (code !== 0) throw new Error(`No backup: ${stderr}`)
  return join(folder, (await readdir(folder)).find((one) => one.endsWith('.backup')) ?? 'none')
}

async function restored(fleet: AttackedFleet, backup: string): Promise<Controller> {
  const { program, command, dataDir } = fleet.controller
  await program.stop()
  const { code, stderr } = await command('restore', backup, '--data-dir', dataDir, '--replace')
  if (code !== 0) throw new Error(`Not restored: ${stderr}`)
  return fleet.controllerAgain()
}

async function sceneOf(t: Test, fleet: AttackedFleet, controller: Controller): Promise<Scene> {
  await joinedSince(t, fleet, controller)
  const line = await controller.joinLine()
  const [, id = ''] = /^(\w+)\./.exec(line[line.indexOf('--token') + 1] ?? '') ?? []
  const [joined, liar] = await Promise.all([newcomer, mallory].map((name) => attackerOf(t, fleet, name)))
  if (joined === undefined || liar === undefined) throw new Error('An attacker has no connection')
  return {
    ...{ controller, admin: fleet.admin, newcomer: joined, liar, token: `bootstrap-token-${id}` },
    checkpoints: async () => (await controller.command('checkpoints', '--data-dir', controller.dataDir)).stdout,
    receivedByHonest: (name) => runPod(controller, name, honest),
  }
}

/** An operator approves it: until then it has no certificate, because its name may be that of a node which is not in the backup. */
async function joinedSince(t: Test, { dataDir, admin }: AttackedFleet, controller: Controller) {
  const joined = joinFleet(controller, newcomer, dataDir(newcomer))
  joined.catch(() => undefined) // awaited below
  const request = await eventually('its request waits', async () => {
    const { items } = JSON.parse((await admin.send('GET', signingRequestsPath)).text)
    const waits = ({ status }: Request) => status?.conditions?.some(({ reason }) => reason === 'AcceptsCheckpoints')
    return (items as readonly Request[]).find(waits)
  })
  t.notOk(request.status?.certificate, 'no certificate by the token alone')
  await controller.kubectl('certificate', 'approve', request.metadata.name)
  await joined
}

type Request = {
  readonly metadata: { readonly name: string }
  readonly status?: {
    readonly certificate?: string
    readonly conditions?: readonly { readonly type: string; readonly reason: string }[]
  }
}

/** With the certificate of this node. */
async function attackerOf(t: Test, fleet: AttackedFleet, name: string): Promise<Attacker> {
  const identity = await nodeOfFolder(fleet.dataDir(name))
  const api = apiAttacker(fleet.controller.apiUrl, identity)
  t.teardown(async () => api.close())
  await register(api, name)
  const received = await linkOf(t, fleet, name, identity)
  const store = await eventually('the broker names the store', () => /"store":"([^"]+)"/.exec(received())?.[1])
  const about = { apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store }
  return {
    ...{ name, api, received },
    deliver: (part, node = name) => api.sendJson('POST', `/api/v1/nodes/${node}/checkpoint`, { ...about, ...part }),
  }
}

/** Asks the broker for its own desired pods and those of the honest node: all that it was sent so far. */
async function linkOf(t: Test, { mqtt }: AttackedFleet, name: string, identity: ClientIdentity): Promise<() => string> {
  const socket = await openTls(mqtt, identity)
  if (socket === undefined) throw new Error('The broker accepts no connection')
  t.teardown(async () => socket.destroy())
  let text = ''
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1')
  })
  const topics = ['controller', `nodes/${name}/desired`, `nodes/${honest}/desired`, 'nodes/+/desired']
  socket.write(
    Buffer.concat([
      connectPacket(name, 1_000),
      subscribePacket({ qos: 0 }, ...topics.map((one) => `bramble/v1/${one}`)),
    ]),
  )
  return () => text
}

/** As a machine that is to do its work would. */
async function register(api: ApiAttacker, name: string) {
  const { status } = await api.sendJson('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } })
  if (status !== 201 && status !== 409) throw new Error(`${name} was not registered: ${status}`)
}
