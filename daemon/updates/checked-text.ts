/** The text of a file with a checksum in its first line: an SD card may return other bytes than were written. */
import { createHash } from 'node:crypto'

export function withChecksum(message: object): string {
  const content = JSON.stringify(message)
  return `${JSON.stringify({ sha256: checksum(content) })}\n${content}\n`
}

/** Throws when the checksum does not match. */
export function checkedContent(text: string): string {
  const end = text.indexOf('\n')
  const { sha256 } = JSON.parse(text.slice(0, end)) as { readonly sha256?: unknown }
  const content = text.slice(end + 1, -1)
  if (checksum(content) !== sha256) throw new Error('The checksum does not match the content')
  return content
}

function checksum(content: string): string {
  return createHash('sha256').update(content).digest('hex')
}
