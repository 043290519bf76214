/** Reads the text form of Prometheus as strictly as its own reader, and keeps its promises beside: see the errors. */

export type ReadFamily = { readonly type: string; readonly samples: readonly ReadSample[] }
export type ReadSample = { readonly labels: { readonly [name: string]: string }; readonly value: number }

/** Throws, naming the line, for anything that is not the form, and for a series or a family that comes twice. */
export function readMetrics(text: string): ReadonlyMap<string, ReadFamily> {
  const families = new Map<string, { type: string; samples: ReadSample[] }>()
  const series = new Set<string>()
  let help: string | undefined
  let current: string | undefined
  if (!text.endsWith('\n')) throw new Error('The last line has no end')
  for (const line of text.slice(0, -1).split('\n')) {
    const refuse = (why: string) => new Error(`${why}: ${line}`)
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line)
    if (comment !== null) {
      const [, word, name = '', rest = ''] = comment
      if (word === 'HELP') {
        help = name
        continue
      }
      if (help !== name) throw refuse('A type without its help before it')
      if (families.has(name)) throw refuse('A family in two pieces')
      if (!['counter', 'gauge', 'histogram', 'summary', 'untyped'].includes(rest)) throw refuse('No such type')
      families.set(name, { type: rest, samples: [] })
      current = name
      continue
    }
    const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (sample === null) throw refuse('Not a sample')
    const [, name = '', inner = '', value = ''] = sample
    const family = families.get(current ?? '')
    const isBucket = family?.type === 'histogram' && name.replace(/_(bucket|sum|count)$/, '') === current
    if (family === undefined || (name !== current && !isBucket)) throw refuse('A sample outside its family')
    const labels = readLabels(inner, refuse)
    const key = `${name}${JSON.stringify(Object.entries(labels).toSorted())}`
    if (series.has(key)) throw refuse('A series that comes twice')
    series.add(key)
    const number = value === '+Inf' ? Infinity : value === '-Inf' ? -Infinity : Number(value)
    if (Number.isNaN(number) && value !== 'NaN') throw refuse('Not a number')
    family.samples.push({ labels, value: number })
  }
  for (const [name, { samples }] of families) if (samples.length === 0) throw new Error(`${name} has no sample`)
  return families
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
