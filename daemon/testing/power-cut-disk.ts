/**
 * A disk in memory whose power can be cut after each of its operations. What was not synced by then may be on it afterwards or not:
 * names and contents, each for itself.
 */
import { basename, dirname } from 'node:path'
import type { UpdateDisk } from '../updates/update-disk.ts'

type File = { content: Uint8Array; readonly isProgram: boolean }
type Entry = File | 'folder'
type Operation =
  | { readonly kind: 'write'; readonly file: File; readonly content: Uint8Array; readonly at?: number }
  | { readonly kind: 'create'; readonly path: string; readonly entry: Entry }
  | { readonly kind: 'rename'; readonly path: string; readonly to: string }
  | { readonly kind: 'remove'; readonly path: string }
type Logged = { readonly operation: Operation; isSynced: boolean }

/** Whether an operation that was not synced is on the disk after a power cut. */
export type Survives = (operation: Operation['kind'], index: number) => boolean

export interface PowerCutDisk extends UpdateDisk {
  /** How many operations there were. */
  readonly operations: number
  /** The disk after a power cut, with nothing in flight. */
  afterCut(survives: Survives, options?: PowerCutOptions): PowerCutDisk
}

class PowerCut extends Error {}

export function isPowerCut(error: unknown): boolean {
  return error instanceof PowerCut
}

export type PowerCutOptions = {
  /** The power is cut instead of this operation, counted from 0; what follows fails. */
  readonly cutAt?: number
  /** False: syncs have no effect, as in a program that forgets them. */
  readonly syncs?: boolean
  /** From this operation on no content is taken: the disk is full. */
  readonly fullFrom?: number
}

export function powerCutDisk(
  options: PowerCutOptions = {},
  before: ReadonlyMap<string, Entry> = new Map(),
): PowerCutDisk {
  const { cutAt = Number.POSITIVE_INFINITY, syncs = true, fullFrom = Number.POSITIVE_INFINITY } = options
  const entries = new Map(before)
  const initial = new Map([...before].map(([path, entry]) => [path, entry === 'folder' ? entry : { ...entry }]))
  const inodes = new Map([...before].map(([path, entry]) => [entry, initial.get(path)]))
  const log: Logged[] = []
  let pending: readonly Logged[] = []
  let operations = 0
  let isOff = false

  const isOn = () => {
    if (isOff) throw new PowerCut('The power is cut')
  }
  const count = () => {
    isOff ||= operations >= cutAt
    isOn()
    operations++
  }
  const act = (operation: Operation) => {
    const logged = { operation, isSynced: false }
    log.push(logged)
    pending = [...pending, logged]
    applyTo(entries, operation)
  }
  const makeDurable = (isMeant: (one: Logged) => boolean) => {
    for (const one of pending) one.isSynced ||= isMeant(one)
    pending = pending.filter(({ isSynced }) => !isSynced)
  }
  const need = (path: string, kind?: 'folder') => {
    const entry = entries.get(path)
    if (entry === undefined || (kind !== undefined && entry !== kind)) throw errorWith('ENOENT', path)
    return entry
  }

  return {
    get operations() {
      return operations
    },
    afterCut(survives, next = {}) {
      const kept = new Map<string, Entry>(initial)
      const fileOf = new Map(inodes)
      log.forEach(({ operation, isSynced }, index) => {
        if (!isSynced && !survives(operation.kind, index)) return
        if (operation.kind === 'create' && operation.entry !== 'folder') {
          const file = { content: new Uint8Array(), isProgram: operation.entry.isProgram }
          fileOf.set(operation.entry, file)
          applyTo(kept, { ...operation, entry: file })
        } else if (operation.kind !== 'write') applyTo(kept, operation)
      })
      log.forEach(({ operation, isSynced }, index) => {
        if (operation.kind !== 'write' || (!isSynced && !survives('write', index))) return
        const file = fileOf.get(operation.file)
        if (file !== undefined && file !== 'folder') file.content = contentAfter(file, operation)
      })
      for (const path of kept.keys()) if (!isReachable(kept, path)) kept.delete(path)
      return powerCutDisk(next, kept)
    },
    async read(path) {
      isOn()
      const entry = entries.get(path)
      return entry === 'folder' ? undefined : entry?.content
    },
    async readPart(path, from, most) {
      isOn()
      const entry = need(path)
      if (entry === 'folder') throw errorWith('EISDIR', path)
      return entry.content.subarray(from, from + most)
    },
    async fileOf(path) {
      isOn()
      const entry = entries.get(path)
      if (entry === undefined || entry === 'folder') return undefined
      return { size: entry.content.length, isProgram: entry.isProgram }
    },
    async kindOf(path) {
      isOn()
      const entry = entries.get(path)
      return entry === undefined ? undefined : entry === 'folder' ? 'folder' : 'file'
    },
    async list(folder) {
      isOn()
      return [...entries.keys()]
        .filter((path) => path !== '/' && dirname(path) === folder)
        .map((path) => basename(path))
    },
    async write(path, content, mode) {
      count()
      need(dirname(path), 'folder')
      if (operations > fullFrom) throw errorWith('ENOSPC', path)
      const there = entries.get(path)
      if (there === 'folder') throw errorWith('EISDIR', path)
      const file = there ?? { content: new Uint8Array(), isProgram: (mode & 0o100) !== 0 }
      if (there === undefined) act({ kind: 'create', path, entry: file })
      act({ kind: 'write', file, content })
    },
    async append(path, content) {
      count()
      const file = need(path)
      if (file === 'folder') throw errorWith('EISDIR', path)
      if (operations > fullFrom) throw errorWith('ENOSPC', path)
      act({ kind: 'write', file, content, at: file.content.length })
    },
    async sync(path) {
      count()
      const file = need(path)
      if (!syncs) return
      makeDurable(({ operation }) => operation.kind === 'write' && operation.file === file)
    },
    async syncFolder(folder) {
      count()
      need(folder, 'folder')
      if (!syncs) return
      makeDurable(({ operation }) => foldersOf(operation).includes(folder))
    },
    async makeFolder(path) {
      count()
      if (path !== '/') need(dirname(path), 'folder')
      if (!entries.has(path)) act({ kind: 'create', path, entry: 'folder' })
    },
    async rename(from, to) {
      count()
      need(from)
      need(dirname(to), 'folder')
      if (entries.get(to) === 'folder' && [...entries.keys()].some((path) => dirname(path) === to))
        throw errorWith('ENOTEMPTY', to)
      act({ kind: 'rename', path: from, to })
    },
    async remove(path) {
      for (const one of [...entries.keys()].filter((other) => isWithin(other, path)).reverse()) {
        count()
        act({ kind: 'remove', path: one })
      }
    },
  }
}

/** An operation without effect is one whose file did not survive. */
function applyTo(entries: Map<string, Entry>, operation: Operation): void {
  switch (operation.kind) {
    case 'write':
      operation.file.content = contentAfter(operation.file, operation)
      break
    case 'create':
      entries.set(operation.path, operation.entry)
      break
    case 'remove':
      entries.delete(operation.path)
      break
    case 'rename': {
      const moved = [...entries].filter(([path]) => isWithin(path, operation.path))
      for (const [path] of moved) entries.delete(path)
      for (const [path, entry] of moved) entries.set(`${operation.to}${path.slice(operation.path.length)}`, entry)
    }
  }
}

/** Where an earlier write did not survive, and one behind it did, the file has zeros. */
function contentAfter({ content }: File, write: Extract<Operation, { kind: 'write' }>): Uint8Array {
  if (write.at === undefined) return write.content
  const whole = new Uint8Array(Math.max(content.length, write.at + write.content.length))
  whole.set(content)
  whole.set(write.content, write.at)
  return whole
}

/** The folders whose sync makes the operation durable. */
function foldersOf(operation: Operation): readonly string[] {
  switch (operation.kind) {
    case 'write':
      return []
    case 'rename':
      return [dirname(operation.path), dirname(operation.to)]
    default:
      return [dirname(operation.path)]
  }
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

function isReachable(entries: ReadonlyMap<string, Entry>, path: string): boolean {
  if (path === '/') return true
  return entries.get(dirname(path)) === 'folder' && isReachable(entries, dirname(path))
}

function errorWith(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code })
}
