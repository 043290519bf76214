/**
 * What is on a block device, and what is done before it is mounted as a file system (formatAndMountSensitive and getDiskFormat in
 * staging/src/k8s.io/mount-utils/mount_linux.go). A device with any signature is never formatted. Pure.
 */

/** Those whose files have owners and groups. */
export const deviceFileSystems: readonly string[] = ['ext4', 'ext3', 'xfs', 'btrfs', 'f2fs']

export type ProbeEnd = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

/** Prints what it finds at the places of all signatures, without its cache. */
export function probeCommand(device: string): readonly string[] {
  const tags = ['TYPE', 'PTTYPE', 'USAGE'].flatMap((tag) => ['--match-tag', tag])
  return ['blkid', '--probe', ...tags, '--output', 'export', device]
}

export type DeviceContent =
  | { readonly is: 'empty' }
  | { readonly is: 'fileSystem'; readonly type: string }
  | { readonly is: 'other'; readonly what: string }
  /** blkid has found several signatures, or could not look. */
  | { readonly is: 'unclear'; readonly why: string }

/** blkid(8): 2 is nothing found, and 8 an ambivalent result. */
export function contentOfDevice({ code, stdout, stderr }: ProbeEnd): DeviceContent {
  const printed = `${stdout}${stderr}`.trim()
  if (code === 2 && printed === '') return { is: 'empty' }
  if (code !== 0) return { is: 'unclear', why: `blkid ended with status ${code}${printed && `: ${printed}`}` }
  const found = new Map(
    stdout.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const [type, table] = [found.get('TYPE'), found.get('PTTYPE')]
  if (table !== undefined) return { is: 'other', what: `a partition table (${table})` }
  if (type === undefined) return { is: 'unclear', why: `blkid printed ${JSON.stringify(printed)}` }
  return found.get('USAGE') === 'filesystem' ? { is: 'fileSystem', type } : { is: 'other', what: `data of ${type}` }
}

export type WantedFileSystem = {
  /** undefined: the one that is there, or ext4. */
  readonly fsType: string | undefined
  readonly isReadOnly: boolean
}

export type DevicePlan =
  | { readonly ok: true; readonly type: string; readonly format?: readonly string[]; readonly isChecked: boolean }
  | { readonly ok: false; readonly message: string }

export function planDevice(device: string, content: DeviceContent, wanted: WantedFileSystem): DevicePlan {
  const { fsType = '', isReadOnly } = wanted
  if (fsType !== '' && !deviceFileSystems.includes(fsType)) {
    return refused(`fsType ${JSON.stringify(fsType)} must be one of ${deviceFileSystems.join(', ')}`)
  }
  switch (content.is) {
    case 'unclear':
      return refused(`failed to get disk format of disk ${device}: ${content.why}`)
    case 'other':
      return refused(
        `disk ${device} has ${content.what}, and is not formatted. Name a device with a file system, or an empty one`,
      )
    case 'fileSystem':
      return existing(device, content.type, wanted)
    case 'empty': {
      if (isReadOnly) {
        return refused(`cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`)
      }
      const type = fsType || 'ext4'
      return { ok: true, type, format: formatCommand(device, type), isChecked: false }
    }
  }
}

function existing(device: string, type: string, { fsType = '', isReadOnly }: WantedFileSystem): DevicePlan {
  if (!deviceFileSystems.includes(type)) {
    return refused(`disk ${device} has the file system ${type}, which must be one of ${deviceFileSystems.join(', ')}`)
  }
  if (fsType !== '' && fsType !== type) {
    return refused(
      `disk ${device} has the file system ${type}, and the volume has the fsType ${fsType}: it is not formatted`,
    )
  }
  return { ok: true, type, isChecked: !isReadOnly }
}

function refused(message: string): DevicePlan {
  return { ok: false, message }
}

/** No blocks are kept for root. That nothing is on the device was seen before: `-F` and `-f` ask no questions. */
function formatCommand(device: string, type: string): readonly string[] {
  const options: { readonly [type: string]: readonly string[] } = {
    ext3: ['-q', '-F', '-m0'],
    ext4: ['-q', '-F', '-m0'],
    xfs: ['-q'],
    btrfs: ['-q'],
    f2fs: ['-q'],
  }
  return [`mkfs.${type}`, ...(options[type] ?? []), device]
}

/** Why it must not be mounted. fsck(8): 4 is errors that are left. */
export function checkProblem(device: string, { code, stdout, stderr }: ProbeEnd): string | undefined {
  if (code === null || (code & 4) === 0) return undefined
  return `'fsck' found errors on device ${device} but could not correct them: ${`${stdout}${stderr}`.trim()}`
}
