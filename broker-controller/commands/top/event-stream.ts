/** Server-sent events out of bytes (HTML standard, 9.2): the data of each. */

/** The first cards of a fleet come some hundred at a time. */
const longestLine = 16 * 1024 * 1024

/** The data of the events that end in each piece. Throws at a line that is too long. Comments, names and times are left out. */
export function eventDecoder(): (piece: Uint8Array) => readonly string[] {
  const decoder = new TextDecoder()
  let rest: string[] = []
  let length = 0
  let data: string[] = []
  return (piece) => {
    const found: string[] = []
    const parts = decoder.decode(piece, { stream: true }).split('\n')
    const last = parts.pop() ?? ''
    for (const part of parts) {
      const line = [...rest, part].join('').replace(/\r$/, '')
      rest = []
      length = 0
      if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
      else if (line === '' && data.length > 0) {
        found.push(data.join('\n'))
        data = []
      }
    }
    rest.push(last)
    length += last.length
    if (length > longestLine) throw new Error(`a message is longer than ${longestLine} characters`)
    return found
  }
}
