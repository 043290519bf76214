/**
 * Devices of volumes that are mounted as file systems: one mount for each volume, in memory, as long as a pod of this machine has it. A device
 * without any signature gets a file system first.
 */
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, realpath, rmdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, messageOf } from '../../../../daemon/errors.ts'
import {
  checkProblem,
  contentOfDevice,
  planDevice,
  probeCommand,
  type WantedFileSystem,
} from '../../../pods/volumes/device-format.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { patientWork } from '../../csi/patient-work.ts'
import { diskOptions, mountPoints, unmount } from '../mounts.ts'
import { runBounded } from '../remote/bounded-child.ts'
import { safeUID } from '../shares/share-mounter.ts'

export interface DeviceMounts {
  /** Mounts it, unless it is mounted. Gives where it is. Throws VolumeError. */
  place(uid: string, device: string, wanted: WantedFileSystem): Promise<string>
  /** Throws VolumeError if it is not mounted. */
  check(uid: string): Promise<void>
  pathOf(uid: string): string
  unmount(uid: string): Promise<void>
  /** The volumes that are mounted. */
  uids(): Promise<readonly string[]>
}

/** In the words of the kubelet. */
const step = 'MountVolume.MountDevice failed'
const usualMs = 30_000
/** A large disk on USB 2. The check of a file system with many files takes as long. */
const longestMs = 30 * 60_000
const packages: { readonly [program: string]: string } = {
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.ext3': 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  'mkfs.btrfs': 'btrfs-progs',
  'mkfs.f2fs': 'f2fs-tools',
}
const endBytes = 1024 * 1024
const longestOutput = 1_000

export function deviceMounts({
  folder,
  patienceMs = 2_000,
}: {
  readonly folder: string
  readonly patienceMs?: number
}) {
  const mounts = join(folder, 'devices')
  const pathOf = (uid: string) => join(mounts, safeUID(uid))
  const patient = patientWork(patienceMs)
  const isMounted = async (uid: string) => (await mountPoints()).some(({ path }) => path === pathOf(uid))

  const result: DeviceMounts = {
    pathOf,
    async place(uid, device, wanted) {
      const late = `device ${device} is being checked or formatted, which takes longer than usual`
      const path = pathOf(uid)
      const mounted = () =>
        patient.run(uid, late, async () => {
          if (!(await isMounted(uid))) await mountDevice(await realpath(device), path, wanted)
        })
      await mounted()
      // That may be the result of a mount which was late, and was unmounted since.
      if (!(await isMounted(uid))) await mounted()
      return path
    },
    async check(uid) {
      if (!(await isMounted(uid))) throw new VolumeError('its device is no longer mounted', { step })
    },
    async unmount(uid) {
      if (await isMounted(uid)) await unmount(pathOf(uid))
      await rmdir(pathOf(uid)).catch(() => undefined)
    },
    async uids() {
      const points = await mountPoints()
      const below = points.flatMap(({ path }) => (path.startsWith(`${mounts}/`) ? [path.slice(mounts.length + 1)] : []))
      return below.filter((name) => !name.includes('/'))
    },
  }
  return result
}

async function mountDevice(device: string, path: string, wanted: WantedFileSystem): Promise<void> {
  await refuseInUse(device)
  const content = contentOfDevice(await act(probeCommand(device), usualMs))
  const plan = planDevice(device, content, wanted)
  if (!plan.ok) throw failed(plan.message)
  if (plan.format !== undefined) {
    // blkid finds nothing on a disk that it cannot read, either.
    await refuseUnreadable(device)
    await actOrThrow(plan.format, longestMs, `format of disk ${device} failed`)
  }
  if (plan.isChecked) await checkFiles(device)
  await mkdir(path, { recursive: true, mode: 0o700 })
  const options = wanted.isReadOnly ? `ro,${diskOptions}` : diskOptions
  const tried = `failed to mount device ${device} (fstype: ${plan.type})`
  await actOrThrow(['mount', '-t', plan.type, '-o', options, device, path], usualMs, tried)
}

/** open(2): a block device that is mounted, or a part of another device, cannot be opened with O_EXCL. */
async function refuseInUse(device: string): Promise<void> {
  const handle = await open(device, constants.O_RDONLY | constants.O_EXCL).catch(async (cause: unknown) => {
    throw failed(codeOf(cause) === 'EBUSY' ? await useOf(device) : `cannot open ${device}: ${messageOf(cause)}`)
  })
  await handle.close()
}

/** Mounts of other namespaces are not in the list, such as that of a container, which stays after a lazy unmount here. */
async function useOf(device: string): Promise<string> {
  const { rdev } = await stat(device)
  const own = (await mountPoints()).find((point) => point.device === deviceNumber(rdev))
  return own === undefined
    ? `device ${device} is in use on this machine: by a container that had it mounted, by a program, or as a part of another device (LVM, RAID)`
    : `device ${device} is mounted at ${own.path}: unmount it, or name this folder as the path of the PersistentVolume`
}

/** As `major:minor`: sysfs and mountinfo have it so. */
function deviceNumber(rdev: number): string {
  return `${(rdev >> 8) & 0xfff}:${(rdev & 0xff) | ((rdev >> 12) & 0xfff00)}`
}

async function refuseUnreadable(device: string): Promise<void> {
  const handle = await open(device, constants.O_RDONLY)
  try {
    const bytes = await sizeOf(handle)
    const room = Buffer.alloc(Math.min(bytes, endBytes))
    for (const at of [0, bytes - room.length]) await handle.read(room, 0, room.length, at)
  } catch (cause) {
    throw failed(`disk ${device} cannot be read, and is not formatted: ${messageOf(cause)}`)
  } finally {
    await handle.close()
  }
}

/** stat(2) has no size of a device: sysfs has it, in sectors of 512 bytes. */
async function sizeOf(handle: FileHandle): Promise<number> {
  const { rdev } = await handle.stat()
  const file = await open(`/sys/dev/block/${deviceNumber(rdev)}/size`)
  try {
    const sectors = Number((await file.readFile('utf8')).trim())
    if (!Number.isSafeInteger(sectors) || sectors <= 0) throw new Error('it has no size')
    return sectors * 512
  } finally {
    await file.close()
  }
}

/** Without the program it is mounted unchecked, as by the kubelet. */
async function checkFiles(device: string): Promise<void> {
  const end = await act(['fsck', '-a', device], longestMs).catch((error: unknown) => {
    if (error instanceof VolumeError && codeOf(error.cause) === 'ENOENT') return undefined
    throw error
  })
  const problem = end && checkProblem(device, end)
  if (problem !== undefined) throw failed(problem.slice(0, longestOutput))
}

async function actOrThrow(command: readonly string[], deadlineMs: number, tried: string): Promise<void> {
  const { code, stdout, stderr } = await act(command, deadlineMs)
  if (code !== 0) throw failed(`${tried}: ${`${stdout}${stderr}`.trim().slice(0, longestOutput) || `status ${code}`}`)
}

/** One at a time for each device. */
async function act(command: readonly string[], deadlineMs: number) {
  const [program = '', device = ''] = [command[0], command.find((part) => part.startsWith('/dev/'))]
  return runBounded({ key: `device ${device}`, command, deadlineMs, ownGroup: true }).catch((cause: unknown) => {
    const missing = `${program} is not on this machine${program in packages ? `. Install the package ${packages[program]}` : ''}`
    const why = codeOf(cause) === 'ENOENT' ? missing : messageOf(cause)
    throw new VolumeError(why, { step, cause })
  })
}

function failed(message: string): VolumeError {
  return new VolumeError(`local: ${message}`, { step })
}
