/**
 * The file system of a machine of the world, for the volumes of its pods. Changes are in the order of its journal: a power cut loses the last of
 * them that were not flushed, and those of the last five seconds at most, as ext4 does. What is below /run is lost with each boot.
 */
import { dirname } from 'node:path/posix'
import type { PoolFiles } from '../../agent/adapters/disk/volumes/pool-files.ts'
import { VolumeError } from '../../agent/pods/volumes/volume-store.ts'
import { uuidOf } from '../../api/text/uuid.ts'
import type { ProgramLife } from './life.ts'
import type { MachineDisk } from './machine-disk.ts'
import type { RandomSource } from './random-source.ts'
import type { SimulatedTime } from './simulated-time.ts'

/** Where the data of a volume is, and whose it was when it was written first. */
export type VolumeData = { readonly data: string; readonly place: 'volume' | 'trash' | 'gone' }

export interface VolumeDisk {
  /** As the agent with this life uses it. */
  seenBy(life: ProgramLife): PoolFiles
  /** What a container writes and flushes in this folder; undefined: the folder is not there. Data that is there stays. */
  write(folder: string, data: string): string | undefined
  /** The names of what is in the folder; none where it is not there. */
  names(folder: string): readonly string[]
  powerCut(): void
  /** The system of the machine is installed again: what is not below this path is lost. */
  loseAllBut(path: string): void
}

export type VolumeDiskNeeds = {
  readonly time: SimulatedTime
  readonly random: RandomSource
  readonly disk: Pick<MachineDisk, 'isFull' | 'slowness'>
  /** Called with each change of where data is. */
  readonly moved: (change: VolumeData) => void
}

/** By path: the text of a file; undefined: a folder. */
type Tree = ReadonlyMap<string, string | undefined>

/** As commit= of ext4. */
const commitMs = 5_000
const dataFile = '/data-of-the-volume'
const inMemory = '/run/'
export const agentFolders = { dataDirectory: '/var/lib/bramble/agent', memoryDirectory: '/run/bramble/agent' }
/** It has a folder for each pod with claims, by the uid of the pod. */
export const podsFolder = `${agentFolders.memoryDirectory}/pods`

export function volumeDisk({ time, random, disk, moved }: VolumeDiskNeeds): VolumeDisk {
  const first: Tree = withFolders(withFolders(new Map(), agentFolders.dataDirectory), agentFolders.memoryDirectory)
  let tree = first
  let durable = first
  let unsynced: readonly { readonly atMs: number; readonly tree: Tree }[] = []
  let places = new Map<string, VolumeData['place']>()

  /** What the file system has flushed by itself. */
  const commit = () => {
    const isLate = ({ atMs }: { readonly atMs: number }) => time.nowMs - atMs < commitMs
    durable = unsynced.findLast((one) => !isLate(one))?.tree ?? durable
    unsynced = unsynced.filter(isLate)
  }
  const change = (next: Tree) => {
    commit()
    tree = next
    unsynced = [...unsynced, { atMs: time.nowMs, tree }]
    look()
  }
  const sync = () => {
    durable = tree
    unsynced = []
  }
  const look = () => {
    const now = placesIn(tree)
    for (const [data, place] of now) if (places.get(data) !== place) moved({ data, place })
    for (const [data, place] of places) if (place !== 'gone' && !now.has(data)) moved({ data, place: 'gone' })
    places = new Map([...[...places.keys()].map((data) => [data, 'gone'] as const), ...now])
  }
  const passed = () => time.passed(disk.slowness * random.between(1, 15))
  const requireSpace = (path: string) => {
    if (disk.isFull) throw systemError('ENOSPC', 'no space left on device', path)
  }

  const journal: Journal = { tree: () => tree, change, sync, passed, requireSpace, newID: () => uuidOf(random.next) }

  return {
    seenBy: (life) => withinLife(callsOf(life, journal), life),
    write(folder, data) {
      if (!tree.has(folder)) return undefined
      const found = tree.get(`${folder}${dataFile}`)
      if (found !== undefined) return found
      change(new Map(tree).set(`${folder}${dataFile}`, data))
      sync()
      return data
    },
    names: (folder) => namesIn(tree, folder),
    powerCut() {
      commit()
      const kept = random.pick([durable, ...unsynced.map((one) => one.tree)])
      tree = withFolders(withoutBelow(kept, inMemory), agentFolders.memoryDirectory)
      sync()
      look()
    },
    loseAllBut(path) {
      const kept = [...tree].filter(([one]) => one === path || one.startsWith(`${path}/`))
      tree = new Map([...first, ...withFolders(new Map(), path), ...kept])
      sync()
      look()
    },
  }
}

/** The file system as it is now, and how it changes. */
type Journal = {
  readonly tree: () => Tree
  readonly change: (next: Tree) => void
  /** All changes so far stay. */
  readonly sync: () => void
  readonly passed: () => Promise<void>
  /** Throws where the disk is full. */
  readonly requireSpace: (path: string) => void
  readonly newID: () => string
}

/** Each call takes time, finds what is there then, and is not made any more when the program has ended meanwhile. */
function callsOf(life: ProgramLife, { tree, change, sync, passed, requireSpace, newID }: Journal): PoolFiles {
  return {
    ...reading(tree),
    async replace(path, text) {
      await passed()
      requireFolder(tree(), dirname(path))
      requireSpace(path)
      if (!life.isAlive) return
      change(new Map(tree()).set(path, text))
      await passed()
      if (life.isAlive) sync()
    },
    async writeAside(path, text) {
      await passed()
      if (life.isAlive) change(withFolders(tree(), dirname(path)).set(path, text))
    },
    async makeFolder(path) {
      await passed()
      if (tree().has(path)) return
      requireFolder(tree(), dirname(path))
      requireSpace(path)
      if (!life.isAlive) return
      change(new Map(tree()).set(path, undefined))
      sync()
    },
    async freshFolder(folder, prefix, _mode) {
      await passed()
      requireFolder(tree(), folder)
      requireSpace(folder)
      const path = `${folder}/${prefix}${newID()}`
      if (life.isAlive) change(new Map(tree()).set(path, undefined))
      return path
    },
    async rename(from, to) {
      await passed()
      if (!tree().has(from)) throw systemError('ENOENT', 'no such file or directory', from)
      requireFolder(tree(), dirname(to))
      if (namesIn(tree(), to).length > 0) throw systemError('ENOTEMPTY', 'directory not empty', to)
      if (life.isAlive) change(renamed(tree(), from, to))
    },
    async sync(folder) {
      await passed()
      requireFolder(tree(), folder)
      if (life.isAlive) sync()
    },
    async removeFile(path) {
      await passed()
      if (life.isAlive && tree().has(path)) change(without(tree(), path))
    },
    async removeEmptyFolder(path) {
      await passed()
      requireFolder(tree(), path)
      if (namesIn(tree(), path).length > 0) throw systemError('ENOTEMPTY', 'directory not empty', path)
      if (life.isAlive) change(without(tree(), path))
    },
    async removeFolder(path) {
      await passed()
      if (life.isAlive && tree().has(path)) change(without(tree(), path))
    },
    remoteType: async () => undefined,
    async checkLocalPath(path) {
      if (!tree().has(path)) throw new VolumeError(`path ${JSON.stringify(path)} does not exist`)
      return 'directory'
    },
    newID,
  }
}

function reading(tree: () => Tree): Pick<PoolFiles, 'read' | 'names' | 'found'> {
  const missing = (path: string) => systemError('ENOENT', 'no such file or directory', path)
  return {
    async read(path) {
      const text = tree().get(path)
      if (text === undefined) throw tree().has(path) ? systemError('EISDIR', 'is a directory', path) : missing(path)
      return text
    },
    async names(path) {
      if (!tree().has(path)) throw missing(path)
      return namesIn(tree(), path)
    },
    async found(path) {
      if (!tree().has(path)) throw missing(path)
      return { isFolder: tree().get(path) === undefined, dev: 1 }
    },
  }
}

/** Each method as work of this life: where it has ended, nothing is answered. */
function withinLife(files: PoolFiles, life: ProgramLife): PoolFiles {
  return new Proxy(files, {
    get(target, method) {
      const own: unknown = Reflect.get(target, method)
      if (typeof own !== 'function' || method === 'newID') return own
      return (...args: readonly unknown[]) => life.within(() => Reflect.apply(own, target, args) as Promise<unknown>)
    },
  })
}

function systemError(code: string, what: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${what}, '${path}'`), { code })
}

function requireFolder(tree: Tree, path: string): void {
  if (!tree.has(path)) throw systemError('ENOENT', 'no such file or directory', path)
  if (tree.get(path) !== undefined) throw systemError('ENOTDIR', 'not a directory', path)
}

function namesIn(tree: Tree, folder: string): readonly string[] {
  const head = `${folder}/`
  return [...tree.keys()].flatMap((path) => {
    const name = path.startsWith(head) ? path.slice(head.length) : '/'
    return name.includes('/') ? [] : [name]
  })
}

function withFolders(tree: Tree, path: string): Map<string, string | undefined> {
  const next = new Map(tree)
  for (let at = path; at !== '/'; at = dirname(at)) if (!next.has(at)) next.set(at, undefined)
  return next
}

function renamed(tree: Tree, from: string, to: string): Tree {
  return new Map(
    [...tree].map(([path, text]) => [
      path === from || path.startsWith(`${from}/`) ? to + path.slice(from.length) : path,
      text,
    ]),
  )
}

function without(tree: Tree, path: string): Tree {
  return new Map([...tree].filter(([one]) => one !== path && !one.startsWith(`${path}/`)))
}

function withoutBelow(tree: Tree, head: string): Tree {
  return new Map([...tree].filter(([path]) => !path.startsWith(head)))
}

/** By what was written. */
function placesIn(tree: Tree): Map<string, 'volume' | 'trash'> {
  const found = new Map<string, 'volume' | 'trash'>()
  for (const [path, text] of tree) {
    if (text === undefined || !path.endsWith(dataFile)) continue
    found.set(text, path.includes('/.bramble/trash/') ? 'trash' : 'volume')
  }
  return found
}
