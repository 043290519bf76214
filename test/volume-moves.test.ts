/** Moves of a volume between the disks of two agents, by the controller, with what carries the copies. Each part ends at any step, and starts again. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex, PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { diskMoves } from '../agent/adapters/disk/volumes/disk-moves.ts'
import { volumePool } from '../agent/adapters/disk/volumes/pool.ts'
import { dataPool, volumePools } from '../agent/adapters/disk/volumes/pools.ts'
import { copyVolume } from '../agent/sessions/volume-session.ts'
import { decode } from '../api/decode.ts'
import { SessionRequestSchema, type SessionStatus, sessionChannels } from '../api/sessions.ts'
import { poolsAnnotation } from '../api/storage/pools.ts'
import { moveOf, moveOrders, moveToAnnotation } from '../api/storage/volume-move.ts'
import { volumeAnnotations } from '../api/storage/volume-names.ts'
import { aNode } from '../api/testing/builders.ts'
import { parseJson } from '../api/text/json.ts'
import { rewrite } from '../broker-controller/store/rewrite.ts'
import { aStorageClass, aStoredClaim } from '../broker-controller/testing/volume-objects.ts'
import { volumeWorld } from '../broker-controller/testing/volume-world.ts'
import { sessionFrames } from '../daemon/sessions/session-frames.ts'
import { isRoot, skipWithout } from './support/missing-parts.ts'

const skip = skipWithout('root', isRoot())
const { status: _, metadata: __, ...sent } = aStoredClaim('data', { spec: { storageClassName: 'local-path' } })
const mostTurns = 2_000

/** A machine: its disk stays when its agent ends. */
async function aMachine(t: Test) {
  const data = await mkdtemp(join(tmpdir(), 'bvm-'))
  t.teardown(() => rm(data, { recursive: true, force: true, maxRetries: 3 }))
  const pool = volumePool(dataPool(data))
  const pools = volumePools([], { dataDirectory: data, memoryDirectory: join(data, 'memory') })
  const whileUnused = async <T>(__: unknown, act: () => Promise<T>) => await act()
  const room = async () => ({ capacityBytes: 2 ** 40, availableBytes: 2 ** 39 })
  const agent = () => diskMoves({ pools, whileUnused, room, flush: async () => undefined })
  const { id, path } = await pool.open()
  return { pool, id, path, agent, moves: agent(), done: new Set<string>() }
}
type Machine = Awaited<ReturnType<typeof aMachine>>

async function aFleet(t: Test) {
  const machines = new Map<string, Machine>([
    ['pi-1', await aMachine(t)],
    ['pi-2', await aMachine(t)],
  ])
  const streams = new Set<Duplex>()
  /** As a node that dials the controller. */
  const open = async (node: string): Promise<Duplex> => {
    const [there, back] = [new PassThrough(), new PassThrough()]
    const own = Duplex.from({ readable: there, writable: back })
    const stream = Duplex.from({ readable: back, writable: there })
    for (const one of [own, stream]) one.on('error', () => undefined)
    stream.once('close', () => own.destroy())
    streams.add(stream)
    const frames = sessionFrames(own)
    const report = (status: SessionStatus) => frames.sendText(sessionChannels.status, JSON.stringify(status))
    const serve = async () => {
      const request = decode(SessionRequestSchema, parseJson((await frames.next())?.payload.toString() ?? ''))
      const copies = machines.get(node)?.moves
      if (!request.ok || request.value.volume === undefined || copies === undefined) return
      const stop = new AbortController()
      own.once('close', () => stop.abort())
      try {
        const started = () => report({ state: 'started' })
        await copyVolume(request.value.volume, copies, { frames, signal: stop.signal, started })
        await report({ state: 'ended' })
      } catch (error) {
        await report({ state: 'ended', reason: 'InternalError', message: String(error) })
      }
    }
    serve().catch(() => own.destroy())
    return stream
  }
  const world = volumeWorld(t, { sessions: { open } })
  const fleet = { ...world, machines, streams, end: world.start() }
  await world.add(
    'storageclasses',
    aStorageClass('local-path', { provisioner: 'bramble.dev/local-path', volumeBindingMode: 'WaitForFirstConsumer' }),
  )
  for (const [name, { id, path }] of machines) {
    const { metadata, ...node } = aNode({ name, annotations: { [poolsAnnotation]: JSON.stringify([{ id, path }]) } })
    const { uid: _uid, resourceVersion: _version, ...own } = metadata
    await world.store.create('nodes', { ...node, metadata: own })
    world.storage.receive(name, { done: [], refused: [], moves: [] })
  }
  await world.settle()
  const annotations = { [volumeAnnotations.selectedNode]: 'pi-1' }
  await world.add('persistentvolumeclaims', { ...sent, metadata: { namespace: 'default', name: 'data', annotations } })
  await world.settle(500)
  const name = (await world.claim('data'))?.spec?.volumeName ?? ''
  const volume = async () => {
    const found = await world.volume(name)
    if (found === undefined) throw new Error('the volume is gone')
    return found
  }
  const wish = (node: string) =>
    rewrite(world, 'persistentvolumes', {
      key: { namespace: '', name },
      change: (fresh) => ({
        ...fresh,
        metadata: { ...fresh.metadata, annotations: { ...fresh.metadata.annotations, [moveToAnnotation]: node } },
      }),
    })
  /** The agent follows its orders, and reports. */
  const turn = async (node: string) => {
    const machine = machines.get(node)
    if (machine === undefined) return
    const orders = moveOrders(await volume()).filter(({ pool }) => pool === machine.id)
    const moves = await machine.moves.follow(orders.filter(({ kind }) => kind !== 'trash'))
    for (const order of orders.filter(({ kind }) => kind === 'trash')) {
      await machine.pool.discard(order)
      machine.done.add(order.uid)
    }
    world.storage.receive(node, { done: [...machine.done], refused: [], moves })
  }
  return { ...fleet, volume, wish, turn }
}

type Fleet = Awaited<ReturnType<typeof aFleet>>

/** Runs until the move has ended; `kill` is called once, when a phase begins. */
async function moved(fleet: Fleet, { phase, kill }: { phase: string; kill: () => Promise<void> }): Promise<number> {
  let isKilled = false
  for (let turns = 1; turns <= mostTurns; turns++) {
    for (const node of fleet.machines.keys()) await fleet.turn(node)
    await fleet.settle(1_000)
    await setImmediate()
    const volume = await fleet.volume()
    const move = moveOf(volume)
    if (move?.phase === phase && !isKilled) {
      isKilled = true
      await kill()
    }
    if (move === undefined && volume.metadata.annotations?.[moveToAnnotation] === undefined) return turns
  }
  throw new Error('the move does not end')
}

async function thereAndBack(t: Test, phase: string): Promise<void> {
  const fleet = await aFleet(t)
  const claim = { claim: 'default/data', hasGroup: false }
  const placeOf = async () => {
    const { metadata, spec } = await fleet.volume()
    const { uid } = metadata
    const path = spec?.local?.path ?? ''
    const machine = [...fleet.machines.values()].find((one) => path.startsWith(`${one.path}/`))
    if (machine === undefined) throw new Error('it is in no pool')
    const hasData = metadata.annotations?.['bramble.dev/has-data'] === 'true'
    return machine.pool.folder({ ...claim, pool: machine.id, uid, path, hasData })
  }
  const before = await placeOf()
  await writeFile(join(before, 'file'), Buffer.alloc(200_000, 1))
  const restartAgents = async () => {
    for (const machine of fleet.machines.values()) machine.moves = machine.agent()
    for (const stream of fleet.streams) stream.destroy()
  }
  const restartController = async () => {
    await fleet.end()
    for (const stream of fleet.streams) stream.destroy()
    fleet.end = fleet.start()
  }
  for (const [to, kill] of [
    ['pi-2', restartAgents],
    ['pi-1', restartController],
  ] as const) {
    await writeFile(join(await placeOf(), `for-${to}`), to)
    await fleet.wish(to)
    await moved(fleet, { phase, kill })
    const folder = await placeOf()
    t.ok(folder.startsWith(`${fleet.machines.get(to)?.path}/`), `${phase} ${kill.name}`)
    t.same((await readdir(folder)).sort(), to === 'pi-2' ? ['file', 'for-pi-2'] : ['file', 'for-pi-1', 'for-pi-2'])
    t.equal(await readFile(join(folder, `for-${to}`), 'utf8'), to)
    t.equal((await readFile(join(folder, 'file'))).length, 200_000)
  }
}

for (const phase of ['copy', 'hold', 'delta', 'place', 'clean']) {
  test(
    `a volume is moved there and back if agents, and then the controller, end in the phase ${phase}`,
    { skip },
    (t) => thereAndBack(t, phase),
  )
}
