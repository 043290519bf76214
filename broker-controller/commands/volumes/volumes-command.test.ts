import { type Test, test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import type { ApiAnswer } from '../../../daemon/api-client.ts'
import { exitCode } from '../../../daemon/process/exit-code.ts'
import { type Ask, anApi } from '../../testing/api-in-memory.ts'
import { storageBoard } from '../../usage/storage-board.ts'
import { poolsTable, trashTable, volumesTable, volumeText } from './volume-tables.ts'
import { adopt, undelete, volumesCommand } from './volumes-command.ts'

const id = '11111111-1111-4111-8111-111111111111'
const signal = new AbortController().signal
const plain = { claim: undefined, size: undefined, isVolumeOnly: false }
const entry = (uid: string, more: object = {}) => ({
  ...{ uid, pool: id, volume: `pvc-${uid}`, folder: `default_db_pvc-${uid}`, claim: 'default/db', capacity: '5Gi' },
  ...{ storageClass: 'local-path', usedBytes: 2 ** 30, keptSeconds: 0, keepSeconds: 7 * 86_400, ...more },
})

/** A fleet with the node pi-1, its pool, and this in the trash. */
async function aFleet(t: Test, ...trash: readonly ReturnType<typeof entry>[]) {
  const storage = storageBoard()
  const { ask, store } = await anApi(t, { storage })
  await store.create(
    'nodes',
    aNode({
      name: 'pi-1',
      labels: { [`pool.bramble.dev/${id}`]: '' },
      annotations: { 'bramble.dev/pools': JSON.stringify([{ id, path: '/mnt/ssd' }]) },
    }),
  )
  const pools = [{ id, capacityBytes: 2 ** 40, availableBytes: 2 ** 39, inTrash: trash.length }]
  storage.receive('pi-1', { done: [], refused: [], pools, trash })
  return { store, ask, api: { client: clientOf(ask), signal } }
}

function clientOf(ask: Ask) {
  const answer = async (method: string, path: string, body?: unknown): Promise<ApiAnswer> => {
    const { code, body: answered } = await ask(method, path, { ...(body !== undefined && { body }) })
    return { status: code, body: answered, dateHeader: undefined }
  }
  return {
    get: (path: string) => answer('GET', path),
    post: (path: string, body: unknown) => answer('POST', path, body),
  }
}

test('a deleted claim comes back with its volume; the second call changes nothing', async (t) => {
  const { store, api } = await aFleet(t, entry('u-1'))
  t.match(
    await undelete('db', plain, api),
    /^The claim default\/db is created\. The data is taken from the trash of pi-1 when its first pod starts\.\n$/,
  )
  const volume = await store.get('persistentvolumes', { namespace: '', name: 'pvc-u-1' })
  t.match(volume, { spec: { claimRef: { name: 'db' }, local: { path: '/mnt/ssd/default_db_pvc-u-1' } } })
  const claim = await store.get('persistentvolumeclaims', { namespace: 'default', name: 'db' })
  t.match(claim, { spec: { volumeName: 'pvc-u-1', resources: { requests: { storage: '5Gi' } } } })
  t.match(await undelete('db', plain, api), /^The claim default\/db gets its volume\./)
})

test('data goes to another claim, or waits for the claim of a chart', async (t) => {
  const { store, api } = await aFleet(t, entry('u-1'), entry('u-2'))
  await t.rejects(undelete('db', plain, api), /has 2 volumes of the claim default\/db\. Give the UID of one/)
  t.match(await undelete('u-1', { ...plain, claim: 'default/db-old' }, api), /^The claim default\/db-old is created/)
  t.match(
    await undelete('u-2', { ...plain, isVolumeOnly: true }, api),
    /^The volume is reserved for the claim default\/db\./,
  )
  t.equal(await store.get('persistentvolumeclaims', { namespace: 'default', name: 'db' }), undefined)
  t.match(await store.get('persistentvolumes', { namespace: '', name: 'pvc-u-2' }), {
    spec: { claimRef: { name: 'db' } },
  })
  await t.rejects(
    undelete('u-2', { ...plain, claim: 'default/other' }, api),
    /There is another volume pvc-u-2, for the claim default\/db: delete it first, or give that claim/,
  )
})

test('nothing is created where the namespace is gone, or the data is not known', async (t) => {
  const { store, api } = await aFleet(t, entry('u-1', { claim: 'gone/db' }))
  await t.rejects(
    undelete('gone/db', plain, api),
    /The namespace gone is gone: create it first \(kubectl create namespace gone\)/,
  )
  await t.rejects(undelete('default/none', plain, api), /Nothing of the claim default\/none is in the trash/)
  t.same((await store.list('persistentvolumes')).items.length, 0)
})

test('a folder of a machine becomes the volume of a claim', async (t) => {
  const { store, api } = await aFleet(t)
  const wanted = { ...plain, claim: 'default/db', size: '5Gi' }
  t.match(
    await adopt({ node: 'pi-1', path: '/srv/db' }, wanted, api),
    /^The claim default\/db is created\. Its data is \/srv\/db on pi-1\. The folder stays when the claim is deleted\.\n$/,
  )
  t.equal((await store.list('persistentvolumes')).items[0]?.spec?.local?.path, '/srv/db')
  await t.rejects(adopt({ node: 'pi-9', path: '/srv/db' }, wanted, api), /There is no node "pi-9"/)
  await t.rejects(
    adopt({ node: 'pi-1', path: '/srv/db' }, { ...wanted, claim: 'default/other' }, api),
    /is the folder of the volume adopted-[0-9a-f]+ \(claim: default\/db\)/,
  )
})

test('the lists show places and sizes, and nothing that controls a terminal', async (t) => {
  const { api, ask } = await aFleet(t, entry('u-1'), entry('u-2', { claim: 'default/\u001b[31mred' }))
  await undelete('u-1', plain, api)
  const fleet = (await ask('GET', '/fleet/volumes')).body as Parameters<typeof volumesTable>[0]
  t.match(
    volumesTable(fleet),
    /^CLAIM +VOLUME +STATE .*\ndefault\/db +pvc-u-1 +\w+ +pi-1 +11111111 +5\.0 GiB +<unknown> +<none>\n$/,
  )
  t.match(poolsTable(fleet), /\n11111111-\S+ +pi-1 +<none> +Ready +1\.0 TiB +512 GiB +1 +2 +\/mnt\/ssd\n$/)
  t.match(trashTable(fleet), /^CLAIM +UID .*\ndefault\/\?\[31mred +u-2 .*\ndefault\/db +u-1 +pi-1 +1\.0 GiB +6d18h\n$/)
  t.match(
    volumeText('db', fleet),
    /^Claim: +default\/db\nVolume: +pvc-u-1\n.*Node: +pi-1\n.*\(Ready, 512 GiB of 1\.0 TiB free\)/s,
  )
  t.match(volumeText('pvc-u-1', fleet), /^Claim: +default\/db\n/)
  t.match(volumeText('db', fleet), /\nNow: +<none>\n/)
  const copying = { to: 'pi-2:/mnt', phase: 'write', mode: 'live', copiedBytes: 2 ** 20 }
  const volumes = fleet.volumes.map((row) => ({ ...row, backup: copying }))
  t.match(volumeText('db', { ...fleet, volumes }), /\nNow: +The backup to pi-2:\/mnt writes: 1\.0 MiB, compressed\n/)
  t.throws(
    () => volumeText('x', fleet),
    /There is no claim default\/x, and no volume x: 'bramble-controller volumes list'/,
  )
  const empty = { pools: [], volumes: [], trash: [] }
  t.same(
    [volumesTable(empty), poolsTable(empty), trashTable(empty)],
    ['No claims and no volumes.\n', 'No node reports a pool.\n', 'The trash is empty.\n'],
  )
  const [pool] = fleet.pools
  t.match(
    trashTable({ ...empty, pools: pool ? [{ ...pool, inTrash: 3 }] : [] }),
    /^3 more are in the trash, and not reported/,
  )
})

test('wrong arguments are refused', async (t) => {
  const refused = async (...argv: readonly string[]) => {
    let error = ''
    const stderr = (text: string) => {
      error += text
    }
    const output = { stdout: () => {}, stderr, signal }
    t.equal(await volumesCommand(argv, output), exitCode.usage, argv.join(' '))
    return error
  }
  t.match(await refused('show'), /use show NAME/)
  t.match(await refused('undelete'), /use undelete CLAIM\|UID/)
  t.match(await refused('adopt', 'pi-1'), /use adopt NODE PATH/)
  t.match(await refused('adopt', 'pi-1', '/srv/x'), /^Give the claim that gets the data with --claim NAMESPACE\/NAME/)
  t.match(
    await refused('undelete', 'db', '--claim', 'a/b/c'),
    /^Invalid value "a\/b\/c" for --claim: use NAMESPACE\/NAME/,
  )
  t.match(await refused('undelete', 'db', '--size', 'big'), /^Invalid value "big" for --size: use a size like 5Gi/)
  t.match(await refused('list', '--output', 'yaml'), /use one of table, json/)
})
