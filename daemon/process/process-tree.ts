/** Ends a process with all that it started. */
import { readdir, readFile } from 'node:fs/promises'

type Process = { readonly pid: number; readonly parent: number; readonly session: number }

/** More than these only a program that forks faster than it is killed needs. */
const maxRounds = 5

/**
 * Sends SIGKILL to the process, its descendants and, if it leads a session, the processes of that session: what its parent left
 * behind belongs to init. `isOwn` gets the text of `/proc/PID/cgroup`; a process for which it is false is left alone. Never rejects.
 */
export async function killTree(pid: number, isOwn: (cgroups: string) => boolean): Promise<void> {
  for (let round = 0; round < maxRounds; round++) {
    const targets = treeOf(pid, await allProcesses())
    const killed = await Promise.all(targets.map((target) => killOwn(target, isOwn)))
    if (!killed.includes(true)) return
  }
}

/** The process itself comes first, so that it starts nothing more. */
export function treeOf(pid: number, processes: readonly Process[]): readonly number[] {
  const children = new Map<number, number[]>()
  for (const one of processes) {
    const siblings = children.get(one.parent)
    if (siblings === undefined) children.set(one.parent, [one.pid])
    else siblings.push(one.pid)
  }
  const found = new Set([pid])
  // A set is also iterated over what is added meanwhile.
  for (const one of found) for (const child of children.get(one) ?? []) found.add(child)
  for (const { pid: member, session } of processes) if (session === pid) found.add(member)
  return [...found]
}

async function killOwn(pid: number, isOwn: (cgroups: string) => boolean): Promise<boolean> {
  try {
    if (!isOwn(await readFile(`/proc/${pid}/cgroup`, 'utf8'))) return false
    process.kill(pid, 'SIGKILL')
    return true
  } catch {
    return false // It has ended.
  }
}

async function allProcesses(): Promise<readonly Process[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const read = await Promise.all(names.map((name) => readFile(`/proc/${name}/stat`, 'latin1').catch(() => '')))
  return read.flatMap((text) => processIn(text) ?? [])
}

/** From `/proc/PID/stat` (proc(5)): the name, in parentheses, may have any character. */
function processIn(stat: string): Process | undefined {
  const pid = Number.parseInt(stat, 10)
  const [state, parent, , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // What has ended and waits for its parent cannot be killed again.
  if (Number.isNaN(pid) || state === undefined || 'ZX'.includes(state)) return undefined
  return { pid, parent: Number(parent), session: Number(session) }
}
