/** Which port of a bridge leads to a pod, from files of the kernel: Docker gives ports names by chance, and reports none. */
import { readdir, readFile, readlink } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { basename, join } from 'node:path'
import type { PodPlace, PodPorts } from '../../../network/ports/port-guard-manager.ts'

/** Docker's name for the interface of a container with one network. */
const device = 'eth0'
const validName = /^[\w.-]{1,15}$/

/** `root`: where the kernel's files are found. */
export function podPorts(root: string): PodPorts {
  const links = join(root, 'sys/class/net')
  return {
    async placeOf({ id, pid }) {
      const files = join(root, 'proc', `${pid}`, 'root/sys/class/net', device)
      const [index, peer] = [await numberIn(join(files, 'iflink')), await numberIn(join(files, 'ifindex'))]
      // The id of a process may be that of another by now.
      const groups = await readFile(join(root, 'proc', `${pid}`, 'cgroup'), 'utf8').catch(() => '')
      if (index === undefined || peer === undefined || !groups.includes(id)) return undefined
      for (const port of await readdir(links)) {
        if (!validName.test(port) || (await numberIn(join(links, port, 'ifindex'))) !== index) continue
        // Each end of a pair names the other one.
        const isOther = (await numberIn(join(links, port, 'iflink'))) !== peer
        return isOther ? undefined : await placeAt(join(links, port), port)
      }
      return undefined
    },
    addressesOf: (bridge) => (networkInterfaces()[bridge] ?? []).map(({ address }) => address),
  }
}

/** Undefined: it is not a port of a bridge. */
async function placeAt(folder: string, port: string): Promise<PodPlace | undefined> {
  const master = await readlink(join(folder, 'master')).catch(() => undefined)
  return master === undefined ? undefined : { port, bridge: basename(master) }
}

async function numberIn(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return /^\d+\n?$/.test(text) ? Number(text) : undefined
}
