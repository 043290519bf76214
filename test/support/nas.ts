/** A NAS in a network namespace of this machine: the kernel's NFS server and Samba. Its cable can be pulled. Needs root. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { commandOrThrow } from './machine-commands.ts'
import { eventually } from './wait.ts'

type Ending = { teardown(end: () => unknown): void }

export const smbUser = { username: 'root', password: 'a secret, of the NAS' }
const address = '10.77.0.2'
const space = 'bramble-nas'
const programs = ['/sbin/mount.nfs', '/sbin/mount.cifs', '/usr/sbin/exportfs', '/usr/sbin/smbd', '/usr/sbin/rpc.nfsd']

/** For `test(name, { skip: whyNoNas() }, …)`. */
export function whyNoNas(): string | false {
  const missing = programs.find((program) => !existsSync(program))
  if (missing !== undefined) return `${missing} is missing`
  try {
    execFileSync('modprobe', ['--all', 'nfs', 'nfsv4', 'nfsd', 'cifs'], { stdio: 'ignore' })
  } catch {
    // Judged by what the kernel lists.
  }
  const known = readFileSync('/proc/filesystems', 'utf8')
  const absent = ['nfs4', 'nfsd', 'cifs'].find((type) => !RegExp(`\\t${type}\\n`).test(known))
  return absent === undefined ? false : `this kernel has no ${absent}`
}

export type Nas = {
  readonly address: string
  /** Exported as `/export` of this machine's own path, and the same folder as the SMB share `files`. */
  readonly folder: string
  cable(state: 'down' | 'up'): Promise<void>
}

/** `folder`: on a file system that can be exported, and below folders that all may enter. */
export async function startNas(t: Ending, folder: string): Promise<Nas> {
  const run = (...command: readonly string[]) => commandOrThrow('ip', command)
  const files = join(folder, 'export')
  mkdirSync(files, { recursive: true })
  chmodSync(files, 0o777)
  await run('netns', 'add', space)
  t.teardown(() => run('netns', 'delete', space))
  await run('link', 'add', 'nas0', 'type', 'veth', 'peer', 'name', 'nas1', 'netns', space)
  t.teardown(() => run('link', 'delete', 'nas0').catch(() => undefined))
  await run('address', 'add', '10.77.0.1/24', 'dev', 'nas0')
  await run('link', 'set', 'nas0', 'up')
  await run('-n', space, 'address', 'add', `${address}/24`, 'dev', 'nas1')
  await run('-n', space, 'link', 'set', 'nas1', 'up')
  await run('-n', space, 'link', 'set', 'lo', 'up')
  writeFileSync(join(folder, 'smb.conf'), sambaSettings(folder, files))
  const server = spawn('ip', ['netns', 'exec', space, 'sh', '-c', serverProgram(folder, files)], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
  t.teardown(async () => {
    stop(server)
    // Its threads are the kernel's, and would keep the namespace.
    const end =
      'mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd; echo 0 > /proc/fs/nfsd/threads; exportfs -ua'
    await run('netns', 'exec', space, 'sh', '-c', end)
  })
  for (const port of [2049, 445]) await eventually(`port ${port} of the NAS`, () => isOpen(port), { withinMs: 60_000 })
  return {
    address,
    folder: files,
    cable: async (state) => void (await run('-n', space, 'link', 'set', 'nas1', state)),
  }
}

/** `ip netns exec` gives it mounts of its own. Version 4 alone needs no other daemons; short times of grace end its start early. */
function serverProgram(folder: string, files: string): string {
  return `
mkdir -p /var/lib/nfs/v4recovery /proc/fs/nfsd
mount -t nfsd nfsd /proc/fs/nfsd
echo 10 > /proc/fs/nfsd/nfsv4leasetime
echo 10 > /proc/fs/nfsd/nfsv4gracetime
exportfs -i -o rw,no_root_squash,no_subtree_check,insecure,fsid=77 '*:${files}'
rpc.mountd --foreground --no-nfs-version 2 --no-nfs-version 3 &
rpc.nfsd --no-nfs-version 3 --tcp --no-udp 4
printf '%s\\n%s\\n' '${smbUser.password}' '${smbUser.password}' | smbpasswd -c ${folder}/smb.conf -s -a ${smbUser.username}
smbd --foreground --no-process-group --configfile=${folder}/smb.conf &
wait`
}

function sambaSettings(folder: string, files: string): string {
  const own = ['private dir', 'lock directory', 'state directory', 'cache directory', 'pid directory', 'ncalrpc dir']
  mkdirSync(join(folder, 'samba'), { recursive: true })
  const folders = own.map((name) => `${name} = ${folder}/samba`).join('\n')
  return `[global]\nserver role = standalone\ndisable netbios = yes\nload printers = no\n${folders}\n[files]\npath = ${files}\nread only = no\n`
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: 1_000 })
    const end = (found: boolean) => {
      socket.destroy()
      resolve(found)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.once('timeout', () => end(false))
  })
}

function stop({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // ESRCH: it has ended.
  }
}
