/** The archive of a release: a tar of regular files and folders. Nothing else is taken, and no path that leads out of it. */
import type { VersionFile } from './update-folder.ts'

const block = 512
export const mostArchiveFiles = 1000

/** Throws if it is not such an archive. */
export function readReleaseArchive(archive: Uint8Array): readonly VersionFile[] {
  const bytes = Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength)
  const files = new Map<string, VersionFile>()
  for (let at = 0; at + block <= bytes.length; ) {
    const header = bytes.subarray(at, at + block)
    if (header.every((byte) => byte === 0)) return [...files.values()]
    const { path, type, size } = readHeader(header)
    const end = at + block + size
    if (end > bytes.length) throw new Error('The archive of the release is cut short')
    if (type === '0' || type === '') addFile(files, path, header, bytes.subarray(at + block, end))
    else if (type !== '5' || size !== 0)
      throw new Error(`The archive of the release has ${path} of the type ${JSON.stringify(type)}`)
    at += block * (1 + Math.ceil(size / block))
  }
  throw new Error('The archive of the release has no end')
}

function readHeader(header: Buffer) {
  if (textAt(header, 257, 5) !== 'ustar') throw new Error('The archive of the release is not a tar of POSIX (ustar)')
  const sum = header.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 32 : byte), 0)
  if (sum !== numberAt(header, 148, 8))
    throw new Error('The archive of the release is damaged: a checksum does not match')
  const prefix = textAt(header, 345, 155)
  const path = `${prefix === '' ? '' : `${prefix}/`}${textAt(header, 0, 100)}`.replace(/^\.\/|\/$/g, '')
  return { path, type: textAt(header, 156, 1), size: numberAt(header, 124, 12) }
}

function addFile(files: Map<string, VersionFile>, path: string, header: Buffer, content: Buffer): void {
  if (!isInside(path)) throw new Error(`The archive of the release has the path ${JSON.stringify(path)}`)
  if (files.has(path) || files.size === mostArchiveFiles)
    throw new Error(`The archive of the release has ${path} twice, or too many files`)
  files.set(path, { path, content, isProgram: (numberAt(header, 100, 8) & 0o100) !== 0 })
}

/** Writes such an archive: the same files give the same bytes. */
export function releaseArchive(files: readonly VersionFile[]): Buffer {
  const sorted = [...files].sort((one, other) => (one.path < other.path ? -1 : 1))
  const parts = sorted.flatMap(({ path, content, isProgram }) => [
    fileHeader(path, content.length, isProgram),
    content,
    filePadding(content.length),
  ])
  return Buffer.concat([...parts, archiveEnd()])
}

/** What ends an archive. */
export function archiveEnd(): Buffer {
  return Buffer.alloc(2 * block)
}

/** What precedes the content of a file in an archive. Throws if an archive cannot have such a path. */
export function fileHeader(path: string, size: number, isProgram: boolean): Buffer {
  const split = path.length <= 100 ? 0 : path.lastIndexOf('/', 155)
  const name = split === 0 ? path : path.slice(split + 1)
  if (Buffer.byteLength(name) > 100 || split < 0 || !isInside(path))
    throw new Error(`The path ${path} does not fit into a release`)
  const header = Buffer.alloc(block)
  header.write(name, 0)
  header.write(isProgram ? '0000755\0' : '0000644\0', 100)
  header.write('0000000\0'.repeat(2), 108)
  header.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  header.write('00000000000\0        0', 136)
  header.write('ustar\x0000', 257)
  if (split > 0) header.write(path.slice(0, split), 345)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

/** What follows a content of `size` bytes in an archive. */
export function filePadding(size: number): Buffer {
  return Buffer.alloc((block - (size % block)) % block)
}

function isInside(path: string): boolean {
  return path !== '' && path.split('/').every((part) => /^[\w@+.-]+$/.test(part) && part !== '.' && part !== '..')
}

function textAt(header: Buffer, from: number, length: number): string {
  const text = header.subarray(from, from + length).toString('latin1')
  const end = text.indexOf('\0')
  return end === -1 ? text : text.slice(0, end)
}

function numberAt(header: Buffer, from: number, length: number): number {
  const text = textAt(header, from, length).trim()
  if (!/^[0-7]{1,11}$/.test(text)) throw new Error('The archive of the release is damaged: a number cannot be read')
  return Number.parseInt(text, 8)
}
