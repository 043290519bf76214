/** The file beside `bramble.yaml` from which a person with the card in a computer reads what the machine does, or what stops it. */

export const bootStatusFileName = 'bramble-status.txt'

/** The first line has the time, and does not count when two texts are compared. */
export function bootStatusText(lines: readonly string[], nowMs: number): string {
  const time = new Date(nowMs).toISOString().slice(0, 16).replace('T', ' ')
  return [`Bramble, ${time} UTC by the clock of this machine:`, ...lines, ''].join('\n')
}
