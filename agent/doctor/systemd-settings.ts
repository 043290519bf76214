/**
 * systemd's configuration files → each value, the file that sets it, and the files that it overrides. As in systemd.syntax(7).
 */

export type SettingFile = { readonly path: string; readonly content: string }
export type Assignment = { readonly file: string; readonly value: string }

/** Ordered by precedence: a file in an earlier folder replaces those of the same name in later ones. */
export const settingFolders = ['/etc/systemd', '/run/systemd', '/usr/local/lib/systemd', '/usr/lib/systemd'] as const

/**
 * Paths in the order in which systemd reads them, the last one wins: the main file, then the drop-ins sorted by name.
 * If several files have the same name, systemd reads only the one in the first folder.
 */
export function inOrder(mains: readonly string[], dropIns: readonly string[]): readonly string[] {
  const byName = new Map<string, string>()
  for (const path of dropIns.toSorted(byFolder)) if (!byName.has(nameOf(path))) byName.set(nameOf(path), path)
  const names = [...byName.keys()].toSorted((a, b) => (a < b ? -1 : 1))
  return [...mains.toSorted(byFolder).slice(0, 1), ...names.flatMap((name) => byName.get(name) ?? [])]
}

/** Every file that sets `key`, in the order of `files`; the last one is in force. */
export function assignmentsOf(files: readonly SettingFile[], section: string, key: string): readonly Assignment[] {
  return files.flatMap(({ path, content }) => {
    let inSection = false
    let value: string | undefined
    for (const line of content.split('\n').map((text) => text.trim())) {
      if (line.startsWith('[')) inSection = line === `[${section}]`
      const [name = '', ...rest] = line.split('=')
      if (inSection && rest.length > 0 && name.trimEnd() === key) value = rest.join('=').trimStart()
    }
    return value === undefined ? [] : [{ file: path, value }]
  })
}

const units: { readonly [unit: string]: number } = {
  us: 1e-6,
  ms: 1e-3,
  '': 1,
  s: 1,
  m: 60,
  h: 3600,
  d: 86_400,
  w: 604_800,
}

const longestSpan = 256

/** `1min 30s` → 90, `infinity` → Infinity; undefined when it is not a time span. As in systemd.time(7). */
export function spanSeconds(text: string): number | undefined {
  // The pattern needs quadratic time.
  if (text.length > longestSpan) return undefined
  if (text === 'infinity') return Number.POSITIVE_INFINITY
  if (!/^\s*(\d+(\.\d+)?\s*[a-z]*\s*)+$/i.test(text)) return undefined
  let seconds = 0
  for (const [, number, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]*)/gi)) {
    const short = /^(us|usec|ms|msec)$/.test(unit) ? unit.slice(0, 2) : shortOf(unit)
    const size = short === undefined ? undefined : units[short]
    if (size === undefined) return undefined
    seconds += Number(number) * size
  }
  return seconds
}

function shortOf(unit: string): string | undefined {
  return /^(|s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?|w|weeks?)$/.test(unit) ? unit.slice(0, 1) : undefined
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function byFolder(a: string, b: string): number {
  const rank = (path: string) => settingFolders.findIndex((folder) => path.startsWith(`${folder}/`))
  return rank(a) - rank(b)
}
