/** The events of a story as they happen to a world. */
import type { World, WorldNode } from '../world/world.ts'
import type { StoryEvent } from './file-story.ts'

export type StoryActs = {
  readonly world: World
  /** A line of the time line. */
  readonly note: (text: string) => void
  /** Moves pods away until there are none, or until it is aborted; then pods may come again. */
  readonly drain: (machine: string, signal: AbortSignal) => Promise<void>
}

const beginnings: { readonly [kind in StoryEvent['kind']]: (about: string) => string } = {
  networkOff: (about) => `${about}: its network is off`,
  powerOff: (about) => `${about}: the power is off`,
  reboot: (about) => `${about}: restarts`,
  diskFull: (about) => `${about}: the disk is full`,
  drain: (about) => `${about}: drain begins`,
  controllerOff: () => 'the controller: its machine is off',
  controllerLost: () => 'the controller: its machine and its disk are lost',
}
const ends: { readonly [kind in StoryEvent['kind']]: (about: string) => string } = {
  networkOff: (about) => `${about}: its network is on`,
  powerOff: (about) => `${about}: the power is on`,
  reboot: (about) => `${about}: has started again`,
  diskFull: (about) => `${about}: the disk has free space`,
  drain: (about) => `${about}: pods may be placed on it again`,
  controllerOff: () => 'the controller: its machine is on',
  controllerLost: () => 'the controller: starts on another machine, with the backup',
}

/** Plans the events from now on. */
export function planStory(story: readonly StoryEvent[], acts: StoryActs): void {
  const { time } = acts.world
  for (const event of story) {
    const { begin, end, backUp } = happening(event, acts)
    if (backUp !== undefined && event.backupMs !== undefined) time.after(event.backupMs, backUp)
    time.after(event.fromMs, () => {
      acts.note(beginnings[event.kind](event.about))
      begin()
    })
    if (event.toMs === undefined) continue
    time.after(event.toMs, () => {
      acts.note(ends[event.kind](event.about))
      end()
    })
  }
}

type Happening = { readonly begin: () => void; readonly end: () => void; readonly backUp?: () => void }

function happening({ kind, machines }: StoryEvent, { world, drain }: StoryActs): Happening {
  const nodes = world.nodes.filter(({ name }) => machines.includes(name))
  const each = (act: (node: WorldNode) => void) => () => nodes.forEach(act)
  switch (kind) {
    case 'networkOff':
      return { begin: each(({ name }) => cut(world, name)), end: each(({ name }) => heal(world, name)) }
    case 'powerOff':
    case 'reboot':
      return { begin: each((node) => node.powerCut()), end: each((node) => node.powerOn()) }
    case 'diskFull':
      return { begin: each((node) => fill(node, true)), end: each((node) => fill(node, false)) }
    case 'drain': {
      const over = new AbortController()
      return { begin: each(({ name }) => void drain(name, over.signal)), end: () => over.abort() }
    }
    case 'controllerOff':
      return { begin: () => world.single?.powerCut(), end: () => world.single?.powerOn() }
    case 'controllerLost':
      return lostController(world)
  }
}

function cut({ network, controllers }: World, machine: string): void {
  for (const { machine: controller } of controllers) {
    network.cut(machine, controller)
    network.cut(controller, machine)
  }
}

function heal({ network, controllers }: World, machine: string): void {
  for (const { machine: controller } of controllers) {
    network.heal(machine, controller)
    network.heal(controller, machine)
  }
}

const freeBytes = 2 ** 30

/** By what is not of pods: no eviction frees it. */
function fill({ disk, host }: WorldNode, isFull: boolean): void {
  disk.fill(isFull)
  for (const signal of ['nodefs.available', 'imagefs.available'] as const) host.leave(signal, isFull ? 0 : freeBytes)
}

function lostController({ single, time }: World): Happening {
  let backup = single?.file.contents()
  return {
    backUp() {
      backup = single?.file.contents()
    },
    begin: () => single?.powerCut(),
    end() {
      if (backup !== undefined) single?.file.restore(backup, time.beganMs + time.nowMs)
      single?.powerOn()
    },
  }
}
