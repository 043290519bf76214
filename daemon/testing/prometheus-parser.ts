/** Reads the text form of Prometheus as strictly as its own reader, and keeps its promises beside: see the errors. */

export type ReadFamily = { readonly type: string; readonly samples: readonly ReadSample[] }
export type ReadSample = { readonly labels: { readonly [name: string]: string }; readonly value: number }

/** Throws, naming the line, for anything that is not the form, and for a series or a family that comes twice. */
export function readMetrics(text: string): ReadonlyMap<string, ReadFamily> {
  if (!text.endsWith('\n')) throw new Error('The last line has no end')
  const read: Reading = { families: new Map(), series: new Set() }
  for (const line of text.slice(0, -1).split('\n')) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line)
    if (comment === null) readSample(read, line)
    else readComment(read, comment)
  }
  for (const [name, { samples }] of read.families) if (samples.length === 0) throw new Error(`${name} has no sample`)
  return read.families
}

type Reading = {
  readonly families: Map<string, { readonly type: string; readonly samples: ReadSample[] }>
  readonly series: Set<string>
  /** The name in the last comment of each kind. */
  help?: string
  current?: string
}

const refusal = (why: string, line: string) => new Error(`${why}: ${line}`)

const metricTypes = ['counter', 'gauge', 'histogram', 'summary', 'untyped']

function readComment(read: Reading, [line, word, name = '', rest = '']: RegExpExecArray): void {
  if (word === 'HELP') {
    read.help = name
    return
  }
  if (read.help !== name) throw refusal('A type without its help before it', line)
  if (read.families.has(name)) throw refusal('A family in two pieces', line)
  if (!metricTypes.includes(rest)) throw refusal('No such type', line)
  read.families.set(name, { type: rest, samples: [] })
  read.current = name
}

function readSample({ families, series, current }: Reading, line: string): void {
  const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
  if (sample === null) throw refusal('Not a sample', line)
  const [, name = '', inner = '', value = ''] = sample
  const family = families.get(current ?? '')
  const isBucket = family?.type === 'histogram' && name.replace(/_(bucket|sum|count)$/, '') === current
  if (family === undefined || (name !== current && !isBucket)) throw refusal('A sample outside its family', line)
  const labels = readLabels(inner, (why) => refusal(why, line))
  const key = `${name}${JSON.stringify(Object.entries(labels).toSorted())}`
  if (series.has(key)) throw refusal('A series that comes twice', line)
  series.add(key)
  family.samples.push({ labels, value: numberIn(value, line) })
}

function numberIn(text: string, line: string): number {
  if (text === '+Inf') return Infinity
  if (text === '-Inf') return -Infinity
  const value = Number(text)
  if (Number.isNaN(value) && text !== 'NaN') throw refusal('Not a number', line)
  return value
}

function readLabels(inner: string, refuse: (why: string) => Error): { readonly [name: string]: string } {
  const labels: { [name: string]: string } = {}
  let rest = inner
  while (rest !== '') {
    const found = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,(?=.)|$)/.exec(rest)
    if (found === null) throw refuse('Not a label')
    const [whole, name = '', value = ''] = found
    if (name in labels) throw refuse('A label that comes twice')
    labels[name] = value.replace(/\\(["\\n])/g, (_, one: string) => (one === 'n' ? '\n' : one))
    rest = rest.slice(whole.length)
  }
  return labels
}
