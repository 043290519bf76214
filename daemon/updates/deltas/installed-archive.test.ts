import { createHash } from 'node:crypto'
import { test } from 'tap'
import { powerCutDisk } from '../../testing/power-cut-disk.ts'
import { releaseArchive } from '../release-archive.ts'
import type { UpdateDisk } from '../update-disk.ts'
import type { VersionFile } from '../update-folder.ts'
import { archiveDigest, emptyArchive, installedArchive } from './installed-archive.ts'

const fileOf = (path: string, content: string, isProgram = false): VersionFile => ({
  ...{ path, content: Buffer.from(content), isProgram },
})
const files = [
  fileOf('bramble-agent', '#!/bin/sh\n', true),
  fileOf('bramble-agent.mjs', 'x'.repeat(100_000)),
  fileOf('node_modules/unix-dgram/build/Release/unix_dgram.node', 'native'.repeat(3000), true),
  fileOf('node_modules/unix-dgram/package.json', '{}'),
  fileOf('runtime', '22\n'),
  fileOf('empty', ''),
]

async function installed(list: readonly VersionFile[] = files): Promise<UpdateDisk> {
  const disk = powerCutDisk()
  for (const path of ['/', '/version']) await disk.makeFolder(path)
  for (const { path, content, isProgram } of list) {
    const steps = path.split('/').slice(0, -1)
    for (const end of steps.keys()) await disk.makeFolder(`/version/${steps.slice(0, end + 1).join('/')}`)
    await disk.write(`/version/${path}`, content, isProgram ? 0o755 : 0o644)
  }
  return disk
}

const folder = '/version'
const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

test('the files of an installed version give the archive that it was unpacked from', async (t) => {
  const archive = await installedArchive(await installed(), { folder, leftOut: [] })
  const whole = releaseArchive(files)
  t.equal(archive.size, whole.length)
  t.equal(await archiveDigest(archive), sha256(whole))
  for (const [from, most] of [
    [0, whole.length],
    [0, 1],
    [511, 2],
    [1000, 70_000],
    [whole.length - 3, 10],
    [whole.length, 10],
  ] as const)
    t.ok(Buffer.from(await archive.read(from, most)).equals(whole.subarray(from, from + most)), `${most} at ${from}`)
})

test('what only the package has is left out', async (t) => {
  const disk = await installed([...files, fileOf('start', 'sh', true), fileOf('release.json', '{}')])
  const archive = await installedArchive(disk, { folder, leftOut: ['start', 'release.json', 'prepare'] })
  t.equal(await archiveDigest(archive), sha256(releaseArchive(files)))
})

test('a version with other files is another archive', async (t) => {
  const digestOf = async (list: readonly VersionFile[]) =>
    archiveDigest(await installedArchive(await installed(list), { folder, leftOut: [] }))
  const usual = await digestOf(files)
  const [first, ...others] = files
  if (first === undefined) throw new Error('There are files')
  t.not(await digestOf(others), usual, 'without a file')
  t.not(await digestOf([{ ...first, isProgram: false }, ...others]), usual, 'with another mode')
  t.not(await digestOf([{ ...first, content: Buffer.from('#!/bin/ls\n') }, ...others]), usual, 'with another content')
})

test('a file that becomes shorter, or goes away, is an error and not another archive', async (t) => {
  const disk = await installed()
  const archive = await installedArchive(disk, { folder, leftOut: [] })
  await disk.write('/version/bramble-agent.mjs', Buffer.from('short'), 0o644)
  await t.rejects(archiveDigest(archive), { message: /was changed meanwhile/ })
  await disk.remove('/version/bramble-agent.mjs')
  await t.rejects(archiveDigest(archive), { code: 'ENOENT' })
})

test('a folder that cannot be an archive is refused, and none has no files', async (t) => {
  const many = Array.from({ length: 1001 }, (_, at) => fileOf(`f${at}`, ''))
  await t.rejects(installedArchive(await installed(many), { folder, leftOut: [] }), { message: /more than 1000 files/ })
  const disk = await installed([fileOf('with space', '')])
  await t.rejects(installedArchive(disk, { folder, leftOut: [] }), { message: /does not fit/ })
  const nowhere = await installedArchive(disk, { folder: '/nowhere', leftOut: [] })
  t.equal(await archiveDigest(nowhere), sha256(releaseArchive([])))
  t.equal(await archiveDigest(emptyArchive), sha256(Buffer.alloc(0)))
})
