/** Orders that a node must not follow, from the message to the disk: whatever comes, the data is where it was. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { Pool } from '../../../../api/storage/pools.ts'
import { cell } from '../../../../daemon/cell.ts'
import { fakeClock } from '../../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { eventually } from '../../../../test/support/wait.ts'
import { decodeOrders } from '../../../pods/volumes/received-orders.ts'
import { volumeOrders } from '../../../pods/volumes/volume-orders.ts'
import { fakeControlPlane } from '../../../testing/fake-control-plane.ts'
import { diskTrash, knownStores } from './disk-trash.ts'
import { volumePool } from './pool.ts'
import { poolFilesOfMachine } from './pool-files.ts'
import { dataPool } from './pools.ts'

const minute = 60_000
const year = 365 * 24 * 3600_000
const wanted = { claim: 'default/data', claimUID: 'uid-claim' }
/** Sizes do not matter here. */
const counter = { usage: async () => undefined, endRound: async () => undefined, close: async () => undefined }
const noMoves = { follow: async () => [], onChange: () => undefined }

/** With the data of a claim, and the store `own`, whose orders it follows. */
async function aNode(t: Test) {
  const data = await mkdtemp(join(tmpdir(), 'bwo-'))
  t.teardown(() => rm(data, { recursive: true, force: true }))
  const pool = volumePool(dataPool(data), poolFilesOfMachine())
  const { id, path } = await pool.open()
  const stores = knownStores(data, poolFilesOfMachine())
  await stores.save(['earlier', 'own'])
  const make = (uid = 'uid-pv', claim = wanted) =>
    pool.folder({ uid, path: '/made/for/default_data_pvc-1', pool: id, hasGroup: false, ...claim })
  await writeFile(join(await make(), 'file'), 'precious')
  const clock = fakeClock()
  const controlPlane = fakeControlPlane()
  const pools = { open: async () => [{ pool, state: await pool.open() }] }
  const start = () => {
    const orders = volumeOrders({
      trash: diskTrash({ pools, discard: pool.discard, counter }),
      ...{ moves: noMoves, stores, controlPlane, clock, log: quietLog(t) },
      ...{ onRelease: () => undefined, event: () => undefined },
      writes: { pools: cell<readonly Pool[] | undefined>(undefined) },
    })
    const stop = new AbortController()
    const running = orders.run(stop.signal)
    const end = async () => {
      stop.abort()
      await running
    }
    t.teardown(end)
    return { ...orders, end }
  }
  let agent = start()
  let sent = 0
  const order = {
    ...{ kind: 'trash', volume: 'pvc-1', uid: 'uid-pv', pool: id, folder: 'default_data_pvc-1' },
    ...wanted,
  }
  /** Resolves when the agent has judged it: an order for what was never there comes last. */
  const receive = async (
    orders: readonly object[],
    { store = 'own', version = sent + 1, epoch = 'e' }: { store?: string; version?: number; epoch?: string } = {},
  ) => {
    sent += 1
    const last = { ...order, uid: `uid-last-${sent}`, folder: `last-${sent}` }
    const message = { epoch, version, store, orders: [...orders, last] }
    const decoded = decodeOrders(JSON.parse(JSON.stringify(message)))
    if (!decoded.ok) throw new Error('the message is not decoded')
    agent.listener.store(store)
    agent.listener.volumes(decoded.value.message)
    await eventually(
      'the orders are judged',
      async () => {
        await clock.advance(100)
        const { done = [], refused = [] } = controlPlane.storage.at(-1) ?? {}
        return [...done, ...refused.map(({ uid }) => uid)].includes(last.uid)
      },
      { everyMs: 5 },
    )
  }
  return {
    ...{ clock, order, path, pool, make, receive, trash: pool.trash },
    async restart() {
      await agent.end()
      agent = start()
    },
    /** Every file below the pool that is not the pool's own, with its bytes. */
    async bytes() {
      const names = await readdir(path, { recursive: true, withFileTypes: true })
      const own = names.filter((one) => one.isFile() && !join(one.parentPath, one.name).includes('.bramble'))
      return Promise.all(own.map(async (one) => [one.name, await readFile(join(one.parentPath, one.name), 'utf8')]))
    },
  }
}

type Node = Awaited<ReturnType<typeof aNode>>
const untouched = [['file', 'precious']]

/** The claim was deleted, its volume kept, and another claim uses the data. */
async function usedByAnother(node: Node): Promise<void> {
  await node.make('uid-pv', { claim: 'default/again', claimUID: 'uid-again' })
}

const wrongOrders: { readonly [title: string]: (node: Node) => Promise<unknown> } = {
  ...Object.fromEntries(
    (
      [
        ['an hour', 3600_000],
        ['a day', 24 * 3600_000],
        ['a year', year],
      ] as const
    ).map(([age, ms]) => [
      `a store from a backup of ${age} ago, with the date of that time, for what another claim has used since`,
      async (node: Node) => {
        await usedByAnother(node)
        node.clock.setWall(node.clock.wallMs() - ms)
        await node.receive([node.order], { store: 'restored' })
        node.clock.suspend(11 * minute)
        await node.receive([node.order], { store: 'restored' })
      },
    ]),
  ),
  'a store from a backup, tried for nine minutes at a time': async (node) => {
    for (const store of ['trial', 'own', 'trial', 'own']) {
      await node.receive(store === 'own' ? [] : [node.order], { store })
      node.clock.suspend(9 * minute)
    }
  },
  'an empty store with the authority of the fleet, that has no orders': async (node) => {
    await node.receive([], { store: 'new' })
    node.clock.suspend(24 * 60 * minute)
    await node.receive([], { store: 'new' })
  },
  'an earlier store that is started again': async (node) => {
    await node.receive([node.order], { store: 'earlier' })
    node.clock.suspend(60 * minute)
    await node.receive([node.order], { store: 'earlier' })
  },
  'a second controller on the same store that goes on with what it had read': async (node) => {
    await node.receive([], { epoch: 'leader' })
    await usedByAnother(node)
    await node.receive([node.order], { epoch: 'frozen' })
  },
  'a retained message that comes again after the data was given back': async (node) => {
    const version = 7
    await node.receive([node.order], { version })
    await node.receive([], { version: 8 })
    await node.make('uid-given-back', { claim: 'default/data', claimUID: 'uid-claim-2' })
    await node.receive([node.order], { version: 9, epoch: 'replayed' })
  },
  'the right UID of the volume with the UID of another claim': (node) =>
    node.receive([{ ...node.order, claimUID: 'uid-other' }]),
  'the right claim with the UID of another volume': (node) =>
    node.receive([{ ...node.order, uid: 'uid-pv-2', claimUID: undefined }]),
  'the right volume in another pool': (node) =>
    node.receive([{ ...node.order, pool: '22222222-2222-4222-8222-222222222222' }]),
  'a path in place of the folder': async (node) => {
    const folders = ['..', '.', '', '/', 'default_data_pvc-1/..', '../default_data_pvc-1', 'default_data_pvc-1/file']
    await node.receive(folders.map((folder) => ({ ...node.order, folder })))
  },
  'a kind of order that this agent does not have': (node) => node.receive([{ ...node.order, kind: 'wipe' }]),
  'a correct order in a message of another store': async (node) => {
    await node.receive([])
    await node.receive([node.order], { store: 'forged' })
    await node.restart()
    await node.receive([node.order], { store: 'forged' })
  },
}

test('no wrong order moves or deletes data', async (t) => {
  for (const [title, send] of Object.entries(wrongOrders))
    await t.test(title, async (t) => {
      const node = await aNode(t)
      await send(node)
      t.same(await node.bytes(), untouched)
      t.same(await node.trash.list(), [])
    })
})

test('the same node follows the right order', async (t) => {
  const node = await aNode(t)
  await node.receive([node.order])
  t.same(await node.bytes(), [])
  t.match(await node.trash.list(), [{ uid: 'uid-pv' }])
})

test('what is in the trash stays for its time although the date is set back or forward by ten years', async (t) => {
  const node = await aNode(t)
  await node.receive([node.order])
  for (const years of [-10, 20, -10]) {
    node.clock.setWall(node.clock.wallMs() + years * year)
    await node.restart()
    node.clock.suspend(70 * minute)
    await node.receive([])
    t.match(await node.trash.list(), [{ uid: 'uid-pv' }], `${years} years`)
  }
  const [kept] = await node.trash.list()
  t.ok((kept?.keptSeconds ?? 0) < 24 * 3600, 'only the time of the running agent counts')
})
