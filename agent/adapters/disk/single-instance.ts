/**
 * Ensures that one agent uses a data directory. A lock file contains the process ID and the start time of that process, so that
 * neither a killed agent nor another program with the same ID keeps the directory locked.
 */

import { createHash, randomBytes } from 'node:crypto'
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../../daemon/errors.ts'

export interface InstanceLock {
  /** Why the lock file could not be written: the disk is full or read-only. No other agent was found. */
  readonly unmarked?: unknown
  release(): Promise<void>
}

/** Another agent uses the directory. */
export class AlreadyRunning extends Error {
  override readonly name = 'AlreadyRunning'
  readonly pid: number

  constructor(pid: number, dataDirectory: string) {
    super(`An agent is running on ${dataDirectory} already: process ${pid}`)
    this.pid = pid
  }
}

type Owner = { readonly pid: number; readonly began: string }

const mostTries = 10

/** The process ID of the agent that uses the directory; undefined when none does. */
export async function agentOn(dataDirectory: string): Promise<number | undefined> {
  const owner = ownerIn((await textOf(lockPath(dataDirectory))) ?? '')
  return owner !== undefined && (await lives(owner)) ? owner.pid : undefined
}

/** Throws AlreadyRunning. A disk that cannot be written does not prevent the agent from running its pods. */
export async function lockDirectory(dataDirectory: string): Promise<InstanceLock> {
  try {
    return await markDirectory(dataDirectory)
  } catch (error) {
    if (!takesNoWrites(error)) throw error
    const pid = await agentOn(dataDirectory)
    if (pid !== undefined) throw new AlreadyRunning(pid, dataDirectory)
    return { unmarked: error, release: async () => undefined }
  }
}

async function markDirectory(dataDirectory: string): Promise<InstanceLock> {
  const path = lockPath(dataDirectory)
  const own = `${process.pid} ${(await beginOf(process.pid)) ?? ''}\n`
  // Written to another file and linked: the lock file is created complete or not at all, and by one agent only.
  const aside = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  try {
    await writeFile(aside, own, { mode: 0o600 })
    await take(aside, path, dataDirectory)
    return { release: () => release(path, own) }
  } finally {
    await unlink(aside).catch(() => undefined)
  }
}

/**
 * Makes `path` a link to the file `aside`, in place of the file of a process that has ended. Of several that find the same file one takes
 * the file's successor, whose name follows from what the file contains, and only that one may replace the file. Throws AlreadyRunning.
 */
async function take(aside: string, path: string, dataDirectory: string): Promise<void> {
  for (let tries = 0; tries < mostTries; tries++) {
    if (await linked(aside, path)) return
    const there = await textOf(path)
    if (there === undefined) continue
    const owner = ownerIn(there)
    if (owner !== undefined && (await lives(owner))) throw new AlreadyRunning(owner.pid, dataDirectory)
    const successor = successorOf(path, there)
    await take(aside, successor, dataDirectory)
    if ((await textOf(path)) === there) return rename(successor, path)
    await unlink(successor).catch(() => undefined) // another agent has replaced it meanwhile
  }
  throw new Error(`Cannot lock ${dataDirectory}: others keep taking it`)
}

function lockPath(dataDirectory: string): string {
  return join(dataDirectory, 'agent.lock')
}

/**
 * No file has the same content again, as it names the start of a process; but for those that a power cut has emptied, and no file is its
 * own successor.
 */
function successorOf(path: string, content: string): string {
  return `${path}.${createHash('sha256').update(content).digest('hex').slice(0, 16)}`
}

async function release(path: string, own: string): Promise<void> {
  if ((await textOf(path)) === own) await unlink(path).catch(() => undefined)
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') return false
    throw new Error(`Cannot make ${to}`, { cause })
  }
}

/** The disk is full, over quota, read-only or failing. */
function takesNoWrites(error: unknown): boolean {
  const code = codeOf(error instanceof Error ? (error.cause ?? error) : error)
  return ['ENOSPC', 'EDQUOT', 'EROFS', 'EIO'].includes(code)
}

function ownerIn(text: string): Owner | undefined {
  const match = /^(\d+) (\S+)\n$/.exec(text)
  return match === null ? undefined : { pid: Number(match[1]), began: match[2] ?? '' }
}

async function lives({ pid, began }: Owner): Promise<boolean> {
  return (await beginOf(pid)) === began
}

/** The start of a process: the boot id and the clock ticks since then; undefined when there is no such process. */
async function beginOf(pid: number): Promise<string | undefined> {
  const stat = await textOf(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The name, in brackets, may contain any character; later fields do not. The start time is field 22, the state field 3.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (state === 'Z') return undefined
  return `${(await textOf('/proc/sys/kernel/random/boot_id'))?.trim() ?? ''}/${fields[18] ?? ''}`
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return undefined
  }
}
