/** Files by which the agent and the units of its package agree on updates of the operating system, and those of the system itself. */
import { mkdir, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../../api/decode.ts'
import { OsUpgradeSchema } from '../../../api/node/os-updates.ts'
import {
  type Described,
  double,
  integer,
  list,
  object,
  oneOf,
  optional,
  type TSchema,
  text,
} from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { isMissing } from '../../../daemon/errors.ts'
import { fileDisk } from '../../../daemon/updates/file-disk.ts'
import { replaceOn } from '../../../daemon/updates/update-disk.ts'
import type { OsFiles } from '../../updates/os-updates-manager.ts'

/** Where the units look for them: `scripts/packages/bramble-agent/os-updates` and `os-upgrade`. */
export const osFolder = '/var/lib/bramble/updates/os'

const wantedFile = 'wanted.json'
const refreshFile = 'refresh'
const PendingSchema = object({ listsFrom: double, security: integer, others: integer, packages: list(text) })
const ResultSchema = object({
  id: text,
  outcome: oneOf('running', 'done', 'failed'),
  reason: optional(text),
})

/** What a unit or a package writes is read up to here. */
const mostBytes = 64 * 1024
const mostKernels = 256

/** `root`: of the file system of the machine. */
export function osFiles(root: string): OsFiles {
  const folder = join(root, osFolder)
  return {
    async facts() {
      const pending = await readDecoded(join(folder, 'pending.json'), PendingSchema)
      const rebootFile = join(root, 'run/reboot-required')
      return {
        pending: pending && pendingOf(pending),
        result: await readDecoded(join(folder, 'result.json'), ResultSchema),
        isRebootRequested: (await readBounded(rebootFile)) !== undefined,
        rebootPackages: ((await readBounded(`${rebootFile}.pkgs`)) ?? '').split('\n'),
        runningKernel: ((await readBounded(join(root, 'proc/sys/kernel/osrelease'))) ?? '').trim(),
        installedKernels: await installedKernels(join(root, 'boot')),
      }
    },
    wanted: () => readDecoded(join(folder, wantedFile), OsUpgradeSchema),
    async saveWanted(wanted) {
      if (wanted !== undefined) return save(folder, wantedFile, JSON.stringify(wanted))
      await remove(folder, wantedFile)
    },
    async saveRefresh(isAllowed) {
      const isSaved = (await readBounded(join(folder, refreshFile))) !== undefined
      if (isSaved === isAllowed) return
      await (isAllowed ? save(folder, refreshFile, 'allowed by the agent\n') : remove(folder, refreshFile))
    },
  }
}

function pendingOf({ listsFrom, ...counts }: Described<typeof PendingSchema>) {
  return { ...counts, listsFromMs: listsFrom * 1000 }
}

/** Debian, Raspberry Pi OS and Ubuntu keep each kernel as /boot/vmlinuz-VERSION. */
async function installedKernels(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
  return names
    .flatMap((name) => (name.startsWith('vmlinuz-') ? [name.slice('vmlinuz-'.length)] : []))
    .slice(0, mostKernels)
}

async function save(folder: string, name: string, content: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await replaceOn(fileDisk, folder, name, content)
}

async function remove(folder: string, name: string): Promise<void> {
  if ((await readBounded(join(folder, name))) === undefined) return
  await fileDisk.remove(`${folder}/${name}`)
  await fileDisk.syncFolder(folder)
}

/** Undefined: there is no such file, or it is not what its unit writes: a power cut or the card has damaged it. */
async function readDecoded<const S extends TSchema>(path: string, schema: S) {
  const decoded = decode(schema, parseJson((await readBounded(path)) ?? ''))
  return decoded.ok ? decoded.value : undefined
}

/** At most its first bytes. Undefined: there is no such file. */
async function readBounded(path: string): Promise<string | undefined> {
  const file = await open(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  if (file === undefined) return undefined
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(mostBytes), 0, mostBytes, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}
