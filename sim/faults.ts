/** The faults of a world: each begins, lasts for a while and ends. */
import { etcdMachine } from './etcd/simulated-etcd.ts'
import { image, isInstance } from './people/workloads.ts'
import type { Story } from './story/story.ts'
import type { RandomSource } from './world/random-source.ts'
import type { SimulatedNetwork } from './world/simulated-network.ts'
import type { StoreContents } from './world/store-file.ts'
import type { Process, SingleController, World, WorldController, WorldNode } from './world/world.ts'

export type Fault = {
  readonly kind: string
  /** Faults of one target exclude each other. */
  readonly target: string
  readonly ms: number
  /** Draws what it needs when it begins, also if it is skipped: the faults after it stay the same. */
  draw?(): void
  begin(): void
  end(): void
}

/** Faults that only some worlds have. */
export type MoreFaults = readonly ((world: World, ms: number, random: RandomSource) => Fault)[]

export function forgottenChanges({ single }: World, ms: number): Fault {
  return {
    ...{ kind: 'changes are forgotten at once', target: 'watches', ms: Math.min(ms, 60_000) },
    begin: () => single?.forgetChanges(true),
    end: () => single?.forgetChanges(false),
  }
}

/** A person removes a container that is done, while another one of its pod works. */
export function removalOfCompleted({ nodes }: World, _ms: number, random: RandomSource): Fault {
  const { name, engine } = random.pick(nodes)
  let id: string | undefined
  return {
    ...{ kind: 'a completed container is removed by hand', target: `Docker of ${name}`, ms: 1 },
    draw() {
      const done = engine.containers.filter(
        ({ identity, state }) => identity.containerName === 'quick' && state === 'exited',
      )
      id = done.length > 0 ? random.pick(done).id : undefined
    },
    begin: () => void (id !== undefined && engine.forget(id)),
    end() {},
  }
}

/**
 * The store is lost, with what was written since the beginning of the fault: a backup from then replaces it. A node does not reach the new
 * controller at first: its checkpoint is late.
 */
export function restoredBackup(world: World, _ms: number, random: RandomSource): Fault {
  const [ageMs, awayMs] = [random.between(10_000, 900_000), random.between(1_000, 60_000)]
  const node = random.pick(world.nodes)
  return restoreFault(world, { ageMs, awayMs, lateMs: random.between(1_000, 540_000) }, () => node)
}

/** The same, and the node that is late runs a pod of a StatefulSet that the backup does not have, where there is one. */
export function lateRestore(world: World, _ms: number, random: RandomSource): Fault {
  const [ageMs, awayMs] = [random.between(60_000, 600_000), random.between(1_000, 60_000)]
  const drawn = random.pick(world.nodes)
  return restoreFault(world, { ageMs, awayMs, lateMs: random.between(60_000, 540_000) }, ({ rows }) => {
    const isKept = (podUID: string) => rows.some(({ resource, body }) => resource === 'pods' && body.includes(podUID))
    return world.nodes.find((node) => instancesOn(node).some(({ podUID }) => !isKept(podUID))) ?? drawn
  })
}

type RestoreTimes = { readonly ageMs: number; readonly awayMs: number; readonly lateMs: number }

/** `lateNode`: the one that does not reach the new controller at first. */
function restoreFault(
  world: World,
  { ageMs, awayMs, lateMs }: RestoreTimes,
  lateNode: (backup: StoreContents) => WorldNode,
): Fault {
  const { single, time } = world
  let late: Fault | undefined
  return {
    ...{ kind: 'a backup is made, which later replaces the store', target: 'backup', ms: ageMs + lateMs },
    begin() {
      const backup = single?.file.contents()
      time.after(ageMs, () => {
        if (single === undefined || backup === undefined) return
        late = partition(world, lateNode(backup), 'both', lateMs)
        late.begin()
        single.powerCut()
        world.recordHealth()
        single.file.restore(backup, time.beganMs + time.nowMs)
        time.after(awayMs, single.powerOn)
      })
    },
    end: () => late?.end(),
  }
}

/** The pods of StatefulSets whose containers run on it. */
function instancesOn({ engine }: WorldNode) {
  return engine.containers
    .filter(({ state, identity }) => state === 'running' && isInstance(identity.podName))
    .map(({ identity }) => identity)
}

/**
 * One node is lost, mostly for longer than its pods tolerate, and its containers run on: they are evicted, and others may take their place.
 * Another fault of the node may end it early: the end of a shorter cut heals this one, too, and an agent starts with its machine. No two nodes
 * are lost by this fault at a time: where all are lost, nothing is evicted.
 */
export function lostNode(world: World, _ms: number, random: RandomSource): Fault {
  const ms = random.between(400_000, 900_000)
  const isCut = random.isTrue(0.5)
  let lost: Pick<Fault, 'begin' | 'end'> | undefined
  return {
    ...{ kind: isCut ? 'a node is cut off for long' : 'an agent is away for long', target: 'one node', ms },
    draw() {
      const ofInstances = world.nodes.filter((one) => instancesOn(one).length > 0)
      const node = random.pick(ofInstances.length > 0 ? ofInstances : world.nodes)
      lost = isCut
        ? partition(world, node, 'both', ms)
        : { begin: () => node.agent.end('killed'), end: node.agent.start }
    },
    begin: () => lost?.begin(),
    end: () => lost?.end(),
  }
}

/** The system of a machine is installed again under its name; the disk of its pool is kept. */
export function reinstalledNode({ nodes }: World, _ms: number, random: RandomSource): Fault {
  const node = random.pick(nodes)
  return {
    ...{ kind: 'the machine is installed again', target: node.name, ms: random.between(60_000, 600_000) },
    begin() {
      node.powerCut()
      node.reinstall()
    },
    end: node.powerOn,
  }
}

/** The next fault. */
export function drawFault(world: World, random: RandomSource, more: MoreFaults): Fault {
  const ms = random.isTrue(0.3) ? random.between(300_000, 700_000) : random.between(1_000, 120_000)
  const node = random.pick(world.nodes)
  const { single } = world
  const ofSingle = (kind: (controller: SingleController) => Fault) => (single === undefined ? [] : [() => kind(single)])
  const kinds: readonly (() => Fault)[] = [
    () => partition(world, node, 'both', ms),
    () => partition(world, node, random.pick(['to', 'from'] as const), ms),
    () => ({ kind: 'the power is cut', target: node.name, ms, begin: node.powerCut, end: node.powerOn }),
    () => ({
      ...{ kind: 'the agent is killed', target: `agent of ${node.name}`, ms: Math.min(ms, 10_000) },
      begin: () => node.agent.end('killed'),
      end: node.agent.start,
    }),
    () => engineFault(node, random.isTrue(0.5), ms),
    () => ({
      kind: 'Docker hangs',
      target: `Docker of ${node.name}`,
      ms,
      begin: node.engine.hang,
      end: node.engine.resume,
    }),
    ...ofSingle((one) => killedController(one, ms)),
    ...ofSingle((one) => darkController(one, ms)),
    ...ofSingle((one) => cutAtWrite(one, random.isTrue(0.5), ms)),
    () => frozen(node.agent, `agent of ${node.name}`, 'the agent stands still', ms),
    ...ofSingle((one) => frozenController(one, ms)),
    () => wrongClock(node.agent, node.name, random, ms),
    ...ofSingle((one) => wrongClock(one, one.machine, random, ms)),
    () => diskFault(node, random.isTrue(0.5), ms),
    ...ofSingle(({ machine: target, file }) => ({
      ...{ kind: 'the store cannot be written', target, ms },
      begin: () => file.refuse(true),
      end: () => file.refuse(false),
    })),
    () => ({
      ...{ kind: 'images are gone and cannot be pulled', target: `images of ${node.name}`, ms },
      begin: node.engine.losePulls,
      end: () => node.engine.load(image),
    }),
    () => removal(node, random),
    () => slowPackets(world, random, ms),
    ...more.map((fault) => () => fault(world, ms, random)),
  ]
  return random.pick(kinds)()
}

/** Faults of one of several controllers, and of the way to its store. */
export const sharedFaults: MoreFaults = [
  ({ controllers }, ms, random) => killedController(random.pick(controllers), ms),
  ({ controllers }, ms, random) => darkController(random.pick(controllers), ms),
  ({ controllers }, ms, random) => frozenController(random.pick(controllers), ms),
  // For as long as a lease lasts, or somewhat longer: another one leads when it goes on.
  ({ controllers }, _ms, random) => frozenController(random.pick(controllers), random.between(5_000, 40_000)),
  ({ controllers }, _ms, random) => frozenController(random.pick(controllers), random.between(5_000, 40_000)),
  ({ controllers }, ms, random) => {
    const one = random.pick(controllers)
    return wrongClock(one, one.machine, random, ms)
  },
  ({ controllers, network }, ms, random) => {
    const [target, isOneWay] = [random.pick(controllers).machine, random.isTrue(0.5)]
    return withoutEtcd(network, [target], isOneWay, { kind: 'etcd cannot be reached', target, ms })
  },
  ({ controllers, network }, ms, random) => {
    const machines = controllers.map(({ machine }) => machine)
    return withoutEtcd(network, machines, random.isTrue(0.5), { kind: 'etcd is away', target: etcdMachine, ms })
  },
  ({ shared }) => ({
    ...{ kind: 'etcd forgets what was changed', target: etcdMachine, ms: 1 },
    begin: () => shared?.compact(),
    end() {},
  }),
]

function killedController({ machine, end, start }: WorldController, ms: number): Fault {
  const kind = 'the controller is killed'
  return { kind, target: machine, ms: Math.min(ms, 10_000), begin: () => end('killed'), end: start }
}

function darkController({ machine, powerCut, powerOn }: WorldController, ms: number): Fault {
  return { kind: 'the power is cut', target: machine, ms, begin: powerCut, end: powerOn }
}

function frozenController(one: WorldController, ms: number): Fault {
  return frozen(one, one.machine, 'the controller stands still', ms)
}

/** One way: what etcd answers is lost, and what it is asked is done. */
function withoutEtcd(
  network: SimulatedNetwork,
  machines: readonly string[],
  isOneWay: boolean,
  fault: Pick<Fault, 'kind' | 'target' | 'ms'>,
): Fault {
  const paths = machines.flatMap((machine) => [
    [etcdMachine, machine] as const,
    ...(isOneWay ? [] : [[machine, etcdMachine] as const]),
  ])
  return {
    ...fault,
    begin() {
      for (const [from, to] of paths) network.cut(from, to)
    },
    end() {
      for (const [from, to] of paths) network.heal(from, to)
    },
  }
}

function frozen({ freeze, thaw }: Process, target: string, kind: string, ms: number): Fault {
  return { kind, target, ms, begin: freeze, end: thaw }
}

/** The date jumps, and later back. */
function wrongClock({ setClock }: Process, machine: string, random: RandomSource, ms: number): Fault {
  const offsetMs = random.pick([-86_400_000, -60_000, -2_000, 5_000, 90_000, 3_600_000, 400 * 86_400_000])
  const kind = `the date is wrong by ${offsetMs / 1000} s`
  return { kind, target: `date of ${machine}`, ms, begin: () => setClock(offsetMs), end: () => setClock(0) }
}

function diskFault({ name, disk }: WorldNode, isFull: boolean, ms: number): Fault {
  const target = `disk of ${name}`
  if (isFull) return { kind: 'the disk is full', target, ms, begin: () => disk.fill(true), end: () => disk.fill(false) }
  return { kind: 'the disk is slow', target, ms, begin: () => disk.slowDown(100), end: () => disk.slowDown(1) }
}

function removal({ name, engine }: WorldNode, random: RandomSource): Fault {
  let id: string | undefined
  return {
    ...{ kind: 'a container is removed by hand', target: `Docker of ${name}`, ms: 1 },
    draw() {
      id = engine.containers.length > 0 ? random.pick(engine.containers).id : undefined
    },
    begin: () => void (id !== undefined && engine.forget(id)),
    end() {},
  }
}

function slowPackets({ network }: World, random: RandomSource, ms: number): Fault {
  let times = 1
  return {
    ...{ kind: 'packets are slow', target: 'network', ms },
    draw() {
      times = random.between(5, 50)
    },
    begin: () => network.slowDown(times),
    end: () => network.slowDown(1),
  }
}

function partition(
  { network, controllers }: World,
  { name }: WorldNode,
  way: 'both' | 'to' | 'from',
  ms: number,
): Fault {
  const paths = controllers
    .flatMap(({ machine }) => [[name, machine, 'to'] as const, [machine, name, 'from'] as const])
    .filter(([, , direction]) => way === 'both' || way === direction)
  return {
    kind: way === 'both' ? 'the network is cut' : `packets ${way} the controller are lost`,
    ...{ target: `network of ${name}`, ms },
    begin: () => {
      for (const [from, to] of paths) network.cut(from, to)
    },
    end: () => {
      for (const [from, to] of paths) network.heal(from, to)
    },
  }
}

function engineFault({ name, engine }: WorldNode, keeps: boolean, ms: number): Fault {
  const kind = keeps ? 'Docker dies, its containers run on' : 'Docker dies with its containers'
  return { kind, target: `Docker of ${name}`, ms, begin: () => engine.die(keeps), end: engine.start }
}

function cutAtWrite({ machine, file, powerCut, powerOn }: SingleController, isWritten: boolean, ms: number): Fault {
  const kind = `the power is cut ${isWritten ? 'after' : 'before'} the next write of the store`
  const end = () => {
    file.disarm()
    powerOn()
  }
  return { kind, target: machine, ms, begin: () => file.cutAtNextWrite(isWritten, powerCut), end }
}

export type FaultSettings = {
  readonly untilMs: number
  readonly more: MoreFaults
  /** Numbers of faults, in their order from 1, that do not happen. */
  readonly skipped: ReadonlySet<number>
  /** Called with the number of each fault, also of one that is skipped. */
  readonly began: (number: number) => void
}

/** Begins faults at random until `untilMs`, and ends each of them. */
export async function runFaults(
  world: World,
  random: RandomSource,
  story: Story,
  { untilMs, more, skipped, began }: FaultSettings,
): Promise<void> {
  const { time } = world
  const busy = new Set<string>()
  const running = new Set<Promise<void>>()
  let count = 0
  const happen = async ({ kind, target, ms, begin, end }: Fault, number: number) => {
    story.record({ kind: 'fault', number, what: kind, target, seconds: Math.round(ms / 1000) })
    begin()
    world.recordHealth()
    await time.passed(ms)
    story.note(target, `END OF ${kind}`)
    end()
    world.recordHealth()
  }
  const run = async (fault: Fault, number: number) => {
    busy.add(fault.target)
    fault.draw?.()
    await (skipped.has(number) ? time.passed(fault.ms) : happen(fault, number))
    busy.delete(fault.target)
  }
  while (time.nowMs < untilMs) {
    await time.passed(random.between(1_000, 90_000))
    const fault = drawFault(world, random, more)
    if (busy.has(fault.target)) continue
    count += 1
    began(count)
    running.add(run(fault, count))
  }
  await Promise.all(running)
}
