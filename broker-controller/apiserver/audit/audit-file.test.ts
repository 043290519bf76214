import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { type AuditLogSettings, auditFile, filesToRemove, rotatedName } from './audit-file.ts'

const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const dayMs = 24 * 3600_000

test('lines are appended in order, for the owner only, and again after a start', async (t) => {
  const { path, open } = aFile(t)
  const first = open()
  for (let at = 0; at < 500; at++) first.file.append(`${at}\n`)
  await first.file.close()
  t.equal(statSync(path).mode & 0o777, 0o600)
  const second = open()
  second.file.append('more\n')
  await second.file.close()
  const lines = readFileSync(path, 'utf8').split('\n')
  t.same(lines, [...Array.from({ length: 500 }, (_, at) => String(at)), 'more', ''])
  t.equal(second.value('apiserver_audit_event_total'), 1)
})

test('a file that others may read is closed to them', async (t) => {
  const { path, open } = aFile(t)
  writeFileSync(path, 'before\n', { mode: 0o644 })
  const { file } = open()
  file.append('x\n')
  await file.close()
  t.equal(statSync(path).mode & 0o777, 0o600)
})

test('a full file is rotated, and the oldest ones are removed', async (t) => {
  const { path, folder, open } = aFile(t, { maxSize: 1, maxBackup: 2 })
  const times = [0, 1000, 2000, 3000]
  const line = `${'x'.repeat(1024 * 1024 - 2)}\n`
  for (const [at, laterMs] of times.entries()) {
    const { file } = open(nowMs + laterMs)
    file.append(at === 0 ? 'first\n' : line)
    await file.close()
  }
  t.same(
    readdirSync(folder).sort(),
    [rotatedName(path, nowMs + 2000), rotatedName(path, nowMs + 3000), path]
      .map((name) => name.slice(folder.length + 1))
      .sort(),
  )
  for (const name of readdirSync(folder)) t.equal(statSync(join(folder, name)).mode & 0o777, 0o600)
})

test('a rotated file that cannot be removed loses no lines', async (t) => {
  const { path, open } = aFile(t, { maxSize: 1, maxBackup: 1 })
  mkdirSync(rotatedName(path, nowMs - dayMs))
  const line = `${'x'.repeat(1024 * 1024 - 2)}\n`
  const { file, value } = open()
  file.append(line)
  await file.close()
  const next = open()
  next.file.append('last\n')
  await next.file.close()
  t.equal(readFileSync(path, 'utf8'), 'last\n')
  t.equal(value('apiserver_audit_event_total'), 1)
  t.equal(next.value('apiserver_audit_event_total'), 1)
})

test('a file is rotated only when a line does not fit', async (t) => {
  const { folder, path, open } = aFile(t, { maxSize: 1 })
  writeFileSync(path, 'x'.repeat(1024 * 1024 - 3))
  const { file } = open()
  file.append('ab\n')
  await file.close()
  t.equal(readdirSync(folder).length, 1)
  const again = open()
  again.file.append('a')
  await again.file.close()
  t.equal(readdirSync(folder).length, 2)
  t.equal(readFileSync(path, 'utf8'), 'a')
})

test('lines beyond the buffer are dropped and counted', async (t) => {
  const { path, open } = aFile(t)
  const { file, value } = open()
  const line = `${'x'.repeat(1024 * 1024 - 1)}\n`
  for (let at = 0; at < 5; at++) file.append(line)
  await file.close()
  t.equal(value('apiserver_audit_error_total', { reason: 'buffer' }), 2, 'the first is being written, two are waiting')
  t.equal(statSync(path).size, 3 * 1024 * 1024)
})

test('a log that cannot be written is reported once, counted, and used again when it can', async (t) => {
  const { path, open } = aFile(t)
  mkdirSync(path)
  const { file, value, log } = open()
  file.append('lost\n')
  await file.close()
  file.append('lost too\n')
  await file.close()
  t.same(log.messages('error'), ['Audit log cannot be written'])
  t.equal(value('apiserver_audit_error_total', { reason: 'write' }), 2)
  rmSync(path, { recursive: true })
  file.append('kept\n')
  await file.close()
  t.equal(readFileSync(path, 'utf8'), 'kept\n')
  t.same(log.messages('info'), ['Audit log is written again'])
})

test('nothing is written through a link', async (t) => {
  const { path, folder, open } = aFile(t)
  const other = join(folder, 'other')
  writeFileSync(other, 'precious')
  symlinkSync(other, path)
  const { file, log } = open()
  file.append('x\n')
  await file.close()
  t.equal(readFileSync(other, 'utf8'), 'precious')
  t.same(log.messages('error'), ['Audit log cannot be written'])
})

test('rotated files are named by their time, and removed by number and by age', async (t) => {
  const path = '/var/log/audit.log'
  t.equal(rotatedName(path, nowMs), '/var/log/audit-2026-01-02T03-04-05.006.log')
  const nameAt = (days: number) => rotatedName(path, nowMs - days * dayMs).slice('/var/log/'.length)
  const names = [
    nameAt(2),
    nameAt(0),
    nameAt(1),
    'audit.log',
    'audit-notes.log',
    'audit-2026-01-02T03-04-05.006.txt',
    'x',
  ]
  const remove = (maxBackup: number, maxAge: number) =>
    filesToRemove(names, { path, maxSize: 1, maxBackup, maxAge }, nowMs)
  t.same(remove(0, 0), [])
  t.same(remove(1, 0), [nameAt(1), nameAt(2)])
  t.same(remove(3, 0), [])
  t.same(remove(0, 1), [nameAt(2)])
  t.same(remove(0, 2), [])
  t.same(remove(2, 1), [nameAt(2)])
})

function aFile(t: Test, more: Partial<AuditLogSettings> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'audit-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'audit.log')
  const open = (atMs = nowMs) => {
    const registry = metricsRegistry()
    const log = quietLog(t, 'Audit log cannot be written')
    const settings = { path, maxSize: 10, maxBackup: 3, maxAge: 0, ...more }
    const file = auditFile({ settings, clock: { wallMs: () => atMs }, registry, log })
    const value = (name: string, labels = {}) =>
      registry.samplesOf(name).find((sample) => JSON.stringify(sample.labels ?? {}) === JSON.stringify(labels))?.value
    return { file, value, log }
  }
  return { folder, path, open }
}
