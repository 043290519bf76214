/**
 * The file of the audit log: lines are appended in the background, and the file is rotated when it is full. The buffer is bounded:
 * a disk that is slow or full loses lines, which are counted, and never delays a request.
 */
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, rename, unlink } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'

/** As kube-apiserver's options of the same names, sizes in megabytes and ages in days. */
export type AuditLogSettings = {
  readonly path: string
  readonly maxSize: number
  /** Rotated files that are kept; 0: all. */
  readonly maxBackup: number
  /** Days that rotated files are kept; 0: for ever. */
  readonly maxAge: number
}

/** At most 40 MB of a card: 80,000 lines, which are months of a homelab. */
export const defaultAuditLog = { maxSize: 10, maxBackup: 3, maxAge: 90 }

export type AuditFileNeeds = {
  readonly settings: AuditLogSettings
  readonly clock: Pick<Clock, 'wallMs'>
  readonly registry: MetricsRegistry
  readonly log: Log
}

export interface AuditFile {
  /** Takes a line without waiting. */
  append(line: string): void
  /** Resolves when everything is written. */
  close(): Promise<void>
}

/** About a second of writes of a busy fleet. */
const mostBufferedBytes = 2 * 1024 * 1024
const megabyte = 1024 * 1024
const dayMs = 24 * 3600_000
const mode = 0o600

export function auditFile({ settings, clock, registry, log }: AuditFileNeeds): AuditFile {
  const { path, maxSize } = settings
  const written = registry.counter({ name: 'apiserver_audit_event_total', help: 'Audit events written to the log.' })
  const lost = registry.counter({
    name: 'apiserver_audit_error_total',
    help: 'Audit events that are not in the log, because the buffer was full or the file could not be written.',
    labelNames: ['reason'],
  })
  let lines: string[] = []
  let bytes = 0
  let file: FileHandle | undefined
  let size = 0
  let writing: Promise<void> | undefined
  let failing = false

  const openFile = async () => {
    // Never through a link: the log would be written to a file of another.
    file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW, mode)
    await file.chmod(mode)
    size = (await file.stat()).size
  }
  const rotate = async () => {
    await file?.close()
    file = undefined
    await rename(path, rotatedName(path, clock.wallMs()))
    await openFile()
    // What cannot be removed loses no lines.
    await removeOld(settings, clock.wallMs()).catch((error: unknown) => {
      log.warn('Rotated audit logs cannot be removed', { path, error })
    })
  }
  const writeBatch = async (text: string) => {
    if (file === undefined) await openFile()
    const length = Buffer.byteLength(text)
    if (size > 0 && size + length > maxSize * megabyte) await rotate()
    await file?.appendFile(text)
    size += length
  }
  const writeAll = async () => {
    while (lines.length > 0) {
      const batch = lines
      lines = []
      bytes = 0
      try {
        await writeBatch(batch.join(''))
        written.inc(undefined, batch.length)
        if (failing) log.info('Audit log is written again', { path })
        failing = false
      } catch (error) {
        if (!failing) log.error('Audit log cannot be written', { path, error })
        failing = true
        lost.inc({ reason: 'write' }, batch.length)
        await file?.close().catch(() => undefined)
        file = undefined
      }
    }
    writing = undefined
  }
  return {
    append(line) {
      if (bytes + line.length > mostBufferedBytes) {
        lost.inc({ reason: 'buffer' })
        return
      }
      lines.push(line)
      bytes += line.length
      writing ??= writeAll()
    },
    async close() {
      await writing
      await file?.close()
      file = undefined
    },
  }
}

/** `audit-2026-11-22T20-10-00.000.log`, as the library of kube-apiserver (lumberjack) names it. */
export function rotatedName(path: string, nowMs: number): string {
  const extension = extname(path)
  const time = new Date(nowMs).toISOString().slice(0, -1).replaceAll(':', '-')
  return join(dirname(path), `${basename(path, extension)}-${time}${extension}`)
}

/** Which of these names are rotated files to remove; they sort by their time. */
export function filesToRemove(
  names: readonly string[],
  { path, maxBackup, maxAge }: AuditLogSettings,
  nowMs: number,
): readonly string[] {
  const extension = extname(path)
  const start = `${basename(path, extension)}-`
  const timeOf = (name: string) => {
    if (!name.startsWith(start) || !name.endsWith(extension)) return Number.NaN
    const text = name.slice(start.length, name.length - extension.length)
    return Date.parse(`${text.replace(/T(\d\d)-(\d\d)-(\d\d\.\d{3})$/, 'T$1:$2:$3')}Z`)
  }
  const rotated = names
    .map((name) => ({ name, atMs: timeOf(name) }))
    .filter(({ atMs }) => !Number.isNaN(atMs))
    .sort((a, b) => b.atMs - a.atMs)
  return rotated
    .filter(({ atMs }, at) => (maxBackup > 0 && at >= maxBackup) || (maxAge > 0 && nowMs - atMs > maxAge * dayMs))
    .map(({ name }) => name)
}

async function removeOld(settings: AuditLogSettings, nowMs: number): Promise<void> {
  const folder = dirname(settings.path)
  const removals = filesToRemove(await readdir(folder), settings, nowMs).map((name) => unlink(join(folder, name)))
  const failed = (await Promise.allSettled(removals)).find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
