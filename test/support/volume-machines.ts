/** A fleet of two machines with pools, each the disk of an agent, with the controllers of volumes and what carries data between them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex, PassThrough } from 'node:stream'
import type { Test } from 'tap'
import { diskBackups } from '../../agent/adapters/disk/backups/disk-backups.ts'
import { diskMoves } from '../../agent/adapters/disk/volumes/disk-moves.ts'
import { volumePool } from '../../agent/adapters/disk/volumes/pool.ts'
import { poolFilesOfMachine } from '../../agent/adapters/disk/volumes/pool-files.ts'
import { dataPool, volumePools } from '../../agent/adapters/disk/volumes/pools.ts'
import { backUpVolume } from '../../agent/sessions/backup-session.ts'
import { copyVolume } from '../../agent/sessions/volume-session.ts'
import { backupOrders } from '../../api/backups/volume-backup.ts'
import { decode } from '../../api/decode.ts'
import { type SessionRequest, SessionRequestSchema, type SessionStatus, sessionChannels } from '../../api/sessions.ts'
import { poolsAnnotation } from '../../api/storage/pools.ts'
import { moveOrders } from '../../api/storage/volume-move.ts'
import { volumeAnnotations } from '../../api/storage/volume-names.ts'
import { aNode } from '../../api/testing/builders.ts'
import { parseJson } from '../../api/text/json.ts'
import { rewrite } from '../../broker-controller/store/rewrite.ts'
import { aStorageClass, aStoredClaim } from '../../broker-controller/testing/volume-objects.ts'
import { volumeWorld } from '../../broker-controller/testing/volume-world.ts'
import { messageOf } from '../../daemon/errors.ts'
import { sessionFrames } from '../../daemon/sessions/session-frames.ts'

const { status: _, metadata: __, ...sent } = aStoredClaim('data', { spec: { storageClassName: 'local-path' } })

/** A machine: its disk stays when its agent ends. */
async function aMachine(t: Test) {
  const data = await mkdtemp(join(tmpdir(), 'bvm-'))
  t.teardown(() => rm(data, { recursive: true, force: true, maxRetries: 3 }))
  const pool = volumePool(dataPool(data), poolFilesOfMachine())
  const pools = volumePools([], { dataDirectory: data, memoryDirectory: join(data, 'memory') }, poolFilesOfMachine())
  const whileUnused = async <T>(__: unknown, act: () => Promise<T>) => await act()
  const room = async () => ({ capacityBytes: 2 ** 40, availableBytes: 2 ** 39 })
  const agent = () => diskMoves({ pools, whileUnused, room, flush: async () => undefined, patienceMs: 50 })
  const { id, path } = await pool.open()
  const backups = () => diskBackups({ pools, room, flush: async () => undefined })
  return { pool, id, path, agent, moves: agent(), newBackups: backups, backups: backups(), done: new Set<string>() }
}
type Machine = Awaited<ReturnType<typeof aMachine>>

/** With the claim `data`, whose volume is on pi-1. */
export async function volumeMachines(
  t: Test,
  backupKeys?: NonNullable<Parameters<typeof volumeWorld>[1]>['backupKeys'],
) {
  const machines = new Map<string, Machine>([
    ['pi-1', await aMachine(t)],
    ['pi-2', await aMachine(t)],
  ])
  /** Those that are open. */
  const streams = new Set<Duplex>()
  /** As a node that dials the controller. */
  const open = async (node: string): Promise<Duplex> => {
    const [there, back] = [new PassThrough(), new PassThrough()]
    const own = Duplex.from({ readable: there, writable: back })
    const stream = Duplex.from({ readable: back, writable: there })
    for (const one of [own, stream]) one.on('error', () => undefined)
    stream.once('close', () => {
      streams.delete(stream)
      own.destroy()
    })
    streams.add(stream)
    const frames = sessionFrames(own)
    const report = (status: SessionStatus) => frames.sendText(sessionChannels.status, JSON.stringify(status))
    const serve = async () => {
      const request = decode(SessionRequestSchema, parseJson((await frames.next())?.payload.toString() ?? ''))
      const machine = machines.get(node)
      if (!request.ok || machine === undefined) return
      const stop = new AbortController()
      own.once('close', () => stop.abort())
      try {
        const started = () => report({ state: 'started' })
        await act(request.value, machine, { frames, signal: stop.signal, started })
        await report({ state: 'ended' })
      } catch (error) {
        await report({ state: 'ended', reason: 'InternalError', message: messageOf(error) })
      }
    }
    serve().catch(() => own.destroy())
    return stream
  }
  const world = volumeWorld(t, { sessions: { open }, ...(backupKeys && { backupKeys }) })
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
  const annotate = (annotations: Readonly<Record<string, string>>) =>
    rewrite(world, 'persistentvolumes', {
      key: { namespace: '', name },
      change: (fresh) => ({
        ...fresh,
        metadata: { ...fresh.metadata, annotations: { ...fresh.metadata.annotations, ...annotations } },
      }),
    })
  /** The agent follows its orders, and reports. */
  const turn = async (node: string) => {
    const machine = machines.get(node)
    if (machine === undefined) return
    const orders = [...moveOrders(await volume()), ...backupOrders(await volume())].filter(
      ({ pool }) => pool === machine.id,
    )
    const moves = await machine.moves.follow(orders.filter(({ kind }) => kind !== 'trash'))
    for (const order of orders.filter(({ kind }) => kind === 'trash')) {
      await machine.pool.discard(order)
      machine.done.add(order.uid)
    }
    world.storage.receive(node, {
      done: [...machine.done],
      refused: [],
      moves,
      volumes: [{ uid: (await volume()).metadata.uid, usedBytes: 1_000 }],
    })
  }
  /** Each agent starts again: what was under way ends. */
  const restartAgents = async () => {
    for (const machine of machines.values()) {
      machine.moves = machine.agent()
      machine.backups = machine.newBackups()
    }
    for (const stream of streams) stream.destroy()
  }
  return { ...fleet, volumeNamed: world.volume, name, volume, annotate, turn, restartAgents }
}

export type VolumeMachines = Awaited<ReturnType<typeof volumeMachines>>

async function act(
  { volume, backup }: SessionRequest,
  { moves, backups }: Pick<Machine, 'moves' | 'backups'>,
  session: Parameters<typeof copyVolume>[2],
): Promise<void> {
  if (volume !== undefined) await copyVolume(volume, moves, session)
  if (backup !== undefined) await backUpVolume(backup, backups, session)
}
