/** CPU time of processes while something is transferred: it depends less on what else runs on the machine than the rate does. */
import { readdir, readFile } from 'node:fs/promises'

/** Groups of processes by their names, and how to read what each has used so far, in ms. */
export type Groups = { readonly [name: string]: () => Promise<number> }

export type Cost = { readonly perSecond: number; readonly cpuMs: { readonly [name: string]: number } }

/** The rate that `run` resolves with, and the CPU time of each group meanwhile. */
export async function costOf(groups: Groups, run: () => Promise<number>): Promise<Cost> {
  const before = await readAll(groups)
  const perSecond = await run()
  const after = await readAll(groups)
  return { perSecond, cpuMs: Object.fromEntries(after.map(([name, ms], i) => [name, ms - (before[i]?.[1] ?? 0)])) }
}

function readAll(groups: Groups): Promise<(readonly [string, number])[]> {
  return Promise.all(Object.entries(groups).map(async ([name, read]) => [name, await read()] as const))
}

/** CPU time of one process without its children, in user and kernel mode. */
export async function ownCpuMs(pid: number): Promise<number> {
  const { user, system } = await timesOf(`${pid}`)
  return user + system
}

/** CPU time of the ended children of this process: kubectl. */
export async function endedChildrenCpuMs(): Promise<number> {
  return (await timesOf('self')).ended
}

/**
 * CPU time of an engine whose files are in `folder`: dockerd, containerd, its shims, and the processes of containers,
 * also those that ended.
 */
export async function engineCpuMs(folder: string): Promise<number> {
  const processes = await Promise.all((await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(processOf))
  const members = new Set(processes.flatMap((one) => (one?.command.includes(folder) ? [one.pid] : [])))
  // A shim is the parent of the processes of its container.
  for (let known = 0; known < members.size; ) {
    known = members.size
    for (const one of processes) if (one !== undefined && members.has(one.parent)) members.add(one.pid)
  }
  members.delete(process.pid)
  return processes.reduce((sum, one) => sum + (one !== undefined && members.has(one.pid) ? one.ms : 0), 0)
}

/** undefined: it has ended. */
async function processOf(pid: string) {
  try {
    const { parent, user, system, ended } = await timesOf(pid)
    return {
      pid: Number(pid),
      parent,
      command: await readFile(`/proc/${pid}/cmdline`, 'utf8'),
      ms: user + system + ended,
    }
  } catch {
    return undefined
  }
}

/** proc_pid_stat(5): fields 4 and 14 to 17, the times in hundredths of a second. */
async function timesOf(pid: string) {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const ms = (field: number) => Number(fields[field - 3]) * 10
  return { parent: Number(fields[1]), user: ms(14), system: ms(15), ended: ms(16) + ms(17) }
}
