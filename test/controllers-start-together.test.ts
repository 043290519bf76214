/** Two controllers that are started in one moment on an etcd that has nothing: one makes the fleet, and the other stands by, or ends. */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { newSecretKey } from '../broker-controller/store/encryption/secret-keys.ts'
import { writeSecretKeys } from '../broker-controller/store/encryption/secret-keys-file.ts'
import { openAuthority } from '../certs/authority.ts'
import { noEtcd as skip } from './support/etcd.ts'
import { type Controller, startController, temporaryFolder } from './support/fleet.ts'
import { copyFiles, replicaPlaces } from './support/replicas.ts'
import { eventually } from './support/wait.ts'

/** What every fleet has from its first moment. */
const kinds = [
  'namespaces',
  'priorityclasses',
  'prioritylevelconfigurations',
  'flowschemas',
  'clusterroles',
  'clusterrolebindings',
  'roles',
  'rolebindings',
  'configmaps',
  'services',
  'secrets',
  'serviceaccounts',
]

type Named = { readonly name: string; readonly uid: string }

/** All are there once the loop of the leader that makes the last one has begun. */
async function objects({ kubectl, tryKubectl }: Controller): Promise<readonly Named[]> {
  const last = ['-n', 'kube-system', 'get', 'configmap', 'extension-apiserver-authentication']
  await eventually('the last object is made', async () => (await tryKubectl(...last)).code === 0)
  const { items } = JSON.parse(await kubectl('get', kinds.join(','), '-A', '-o', 'json'))
  return items.map(
    ({ kind, metadata }: { kind: string; metadata: { namespace?: string; name: string; uid: string } }) => ({
      name: `${kind} ${metadata.namespace ?? ''}/${metadata.name}`,
      uid: metadata.uid,
    }),
  )
}

const names = (some: readonly Named[]) => some.map(({ name }) => name).sort()
const isReady = ({ program }: Controller) => program.lines.some(({ message }) => message === 'Controller ready')

async function info({ kubectl }: Controller): Promise<{ readonly [name: string]: string }> {
  return JSON.parse(await kubectl('-n', 'kube-public', 'get', 'configmap', 'cluster-info', '-o', 'json')).data
}

/** Files as of a fleet that had a store before. */
async function makeFiles(dataDir: string): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await openAuthority(join(dataDir, 'authority'), Date.now())
  await writeSecretKeys(join(dataDir, 'secrets.key'), [newSecretKey()])
}

test('with the same files: one authority, one store and one leader, and the other one stands by', {
  skip,
  timeout: 300_000,
}, async (t) => {
  const dataDir = join(await temporaryFolder(t), 'alone')
  await makeFiles(dataDir)
  const alone = await startController(t, { dataDir })
  const wanted = names(await objects(alone))
  await alone.program.stop()
  t.ok(wanted.length > 50, `${wanted.length} objects`)

  for (let round = 0; round < 3; round++) {
    const { places, start } = await replicaPlaces(t)
    await makeFiles(places[0]?.dataDir ?? '')
    await copyFiles(places, 1)
    const both = await Promise.all([start(0, 'perhaps'), start(1, 'perhaps')])
    const leader = await eventually('one is ready', () => both.find(isReady))
    const other = both.find((one) => one !== leader)
    if (other === undefined) throw new Error('Both lead')
    await other.program.logged('Controller stands by')
    t.notOk(isReady(other), 'the other one has not led')
    t.equal(other.caHash, leader.caHash)
    t.match(await leader.kubectl('get', '--raw', '/readyz?verbose'), /\[\+\]leading ok/)
    t.match(await other.kubectl('get', '--raw', '/readyz?verbose'), /\[\+\]standby ok/)
    const servers = async () => (await info(leader))['apiServers']?.split('\n').sort()
    await eventually('both are in the lists', async () => (await servers())?.length === 2)

    const made = await objects(leader)
    t.same(names(made), wanted, 'the objects of a fleet, and each of them once')
    t.same(await objects(other), made, 'both read the same ones')
    await other.kubectl('create', 'secret', 'generic', 'word', '--from-literal=word=sesame')
    const word = (of: Controller) => of.kubectl('get', 'secret', 'word', '-o', 'jsonpath={.data.word}')
    t.equal(await word(leader), await word(other), 'and the same key of Secrets')

    await leader.program.stop()
    await other.program.logged('Controller ready')
    t.same(
      (await objects(other)).filter(({ name }) => !name.endsWith('/word')),
      made,
      'the next leader makes none again',
    )
    await other.program.stop()
  }
})

for (const [what, refusal] of [
  ['authority', /authority is another one, and the fleet in this store trusts sha256:/],
  ['secrets.key', /are encrypted with key [0-9a-f]+, and .*secrets\.key does not contain it/],
] as const) {
  test(`with another ${what} each: the one that is not first ends with status 78, and leaves nothing`, {
    skip,
    timeout: 180_000,
  }, async (t) => {
    const { places, start } = await replicaPlaces(t)
    const [first, second] = places
    if (first === undefined || second === undefined) throw new Error('There are two places')
    await makeFiles(first.dataDir)
    await copyFiles(places, 1)
    await rm(join(second.dataDir, what), { recursive: true })
    if (what === 'secrets.key') await writeSecretKeys(join(second.dataDir, what), [newSecretKey()])
    const outcomes = await Promise.all([0, 1].map((number) => ending(start(number, 'perhaps'))))
    const leaders = outcomes.flatMap(({ controller }) =>
      controller !== undefined && isReady(controller) ? controller : [],
    )
    t.equal(leaders.length, 1, 'one leads')
    const [leader] = leaders
    const refused = outcomes.find(({ controller }) => controller !== leader)
    if (leader === undefined || refused === undefined) throw new Error('One leads, and one ends')
    t.match(refused, { code: 78, why: refusal })
    const servers = async () => (await info(leader))['apiServers']
    await eventually('its address is removed', async () => (await servers())?.split('\n').length === 1)
    t.equal(await servers(), (await info(leader))['kubeconfig']?.match(/https:\/\/[\d.]+:\d+/)?.[0])
    await leader.kubectl('create', 'secret', 'generic', 'word', '--from-literal=word=sesame')
    await startsAgain(t, start, outcomes.indexOf(refused), refusal)
    t.equal((await leader.tryKubectl('get', 'secret', 'word')).code, 0, 'the leader goes on')
  })
}

/** How it ended; of one that leads: itself. */
async function ending(starting: Promise<Controller>) {
  const controller = await starting.catch((error: unknown) => error)
  if (controller instanceof Error) {
    // It ended before it had found that another one leads.
    const why = controller instanceof AggregateError ? controller.errors.map(String).join() : String(controller)
    return { code: 78, why, controller: undefined }
  }
  const started = controller as Controller
  const leads = eventually('it leads', () => isReady(started), { withinMs: 60_000 }).then(() => undefined)
  const code = await Promise.race([started.program.ended, leads.catch(() => 'neither leads nor ends')])
  const failed = started.program.lines.find(({ message }) => message === 'Controller failed')
  return { code, why: String(failed?.['error']), controller: code === undefined ? started : undefined }
}

/** By the checks of a start it ends at once. */
async function startsAgain(
  t: Test,
  start: (number: number, standsBy: 'perhaps') => Promise<Controller>,
  number: number,
  refusal: RegExp,
): Promise<void> {
  t.match(await ending(start(number, 'perhaps')), { controller: undefined, why: refusal })
}
