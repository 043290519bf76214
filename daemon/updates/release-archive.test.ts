import { test } from 'tap'
import { readReleaseArchive, releaseArchive } from './release-archive.ts'
import type { VersionFile } from './update-folder.ts'

const fileOf = (path: string, content: string, isProgram = false): VersionFile => ({
  path,
  content: Buffer.from(content),
  isProgram,
})
const long = `node_modules/${'a'.repeat(90)}/build/native.node`
const files = [
  fileOf('bramble-agent', '#!/bin/sh\n', true),
  fileOf('bramble-agent.mjs', 'x'.repeat(512)),
  fileOf(long, ''),
]

test('an archive is read as it was written, whatever the order', async (t) => {
  const read = readReleaseArchive(releaseArchive(files))
  t.same(
    read.map(({ path, content, isProgram }) => ({ path, content: Buffer.from(content).toString(), isProgram })),
    [
      { path: 'bramble-agent', content: '#!/bin/sh\n', isProgram: true },
      { path: 'bramble-agent.mjs', content: 'x'.repeat(512), isProgram: false },
      { path: long, content: '', isProgram: false },
    ],
  )
  t.same(releaseArchive([...files].reverse()), releaseArchive(files))
})

/** With a changed field of the first header, and a checksum that fits. */
function changed(at: number, text: string, whole = releaseArchive(files)): Buffer {
  const archive = Buffer.from(whole)
  archive.write(text, at)
  archive.write(' '.repeat(8), 148)
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0)
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return archive
}

const hostile: { readonly [name: string]: readonly [Buffer, RegExp] } = {
  'a path out of it': [changed(0, '../../etc/passwd\0'), /the path/],
  'an absolute path': [changed(0, '/etc/passwd\0'), /the path/],
  'a symbolic link': [changed(156, '2'), /of the type "2"/],
  'a hard link': [changed(156, '1'), /of the type "1"/],
  'a device': [changed(156, '3'), /of the type "3"/],
  'a header of pax': [changed(156, 'x'), /of the type "x"/],
  'a size of 8 GB': [changed(124, '77777777777\0'), /cut short/],
  'a size in base 256': [changed(124, '\x80\0\0\0'), /a number/],
  'a wrong checksum': [Buffer.concat([Buffer.from('X'), releaseArchive(files).subarray(1)]), /a checksum/],
  'no end': [releaseArchive(files).subarray(0, -1024), /no end/],
  'a path twice': [Buffer.concat([releaseArchive(files).subarray(0, 1024), releaseArchive(files)]), /twice/],
  'nothing of a tar': [Buffer.alloc(1024, 'x'), /not a tar/],
}
for (const [name, [archive, why]] of Object.entries(hostile)) {
  test(`an archive with ${name} is refused`, async (t) => {
    t.throws(() => readReleaseArchive(archive), why)
  })
}

test('a path that does not fit is not written', async (t) => {
  for (const path of ['', '../x', 'a'.repeat(101), `${'a'.repeat(160)}/b`])
    t.throws(() => releaseArchive([fileOf(path, '')]), /does not fit/)
})
