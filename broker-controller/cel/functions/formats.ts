/** Named formats of text (apiserver/pkg/cel/library/format.go). */
import {
  dns1035LabelProblem,
  dnsLabelProblem,
  dnsSubdomainProblem,
  labelValueProblem,
  qualifiedNameProblem,
} from '../../../api/names.ts'
import { parseTimestamp } from '../values/time-values.ts'
import { ArrayList, none, noSuchOverload, OpaqueValue, Optional, type Value } from '../values/value.ts'
import { type FunctionDefinition, type FunctionTable, patternFactor, traversalFactor, valueSize } from './definition.ts'

type Format = {
  readonly problem: (text: string) => string | undefined
  /** Size of the pattern that the format stands for, for its cost. */
  readonly patternSize: number
}

/** With `-a` behind it: the text is the start of a name. */
const startOf = (problem: (text: string) => string | undefined) => (text: string) =>
  problem(text.endsWith('-') ? `${text.slice(0, -1)}a` : text)
const matching = (pattern: RegExp, problem: string) => (text: string) => (pattern.test(text) ? undefined : problem)

function uriProblem(text: string): string | undefined {
  const isAbsolute = /^[a-zA-Z][a-zA-Z0-9+.-]*:/.test(text)
  return (isAbsolute || text.startsWith('/')) && !/\p{Cc}/u.test(text)
    ? undefined
    : `parse "${text}": invalid URI for request`
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}

const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i

const formats: ReadonlyMap<string, Format> = new Map([
  ['dns1123Label', { problem: dnsLabelProblem, patternSize: 30 }],
  ['dns1123Subdomain', { problem: dnsSubdomainProblem, patternSize: 60 }],
  ['dns1035Label', { problem: dns1035LabelProblem, patternSize: 30 }],
  ['qualifiedName', { problem: qualifiedNameProblem, patternSize: 60 }],
  ['dns1123LabelPrefix', { problem: startOf(dnsLabelProblem), patternSize: 30 }],
  ['dns1123SubdomainPrefix', { problem: startOf(dnsSubdomainProblem), patternSize: 60 }],
  ['dns1035LabelPrefix', { problem: startOf(dns1035LabelProblem), patternSize: 30 }],
  ['labelValue', { problem: labelValueProblem, patternSize: 40 }],
  ['uri', { problem: uriProblem, patternSize: 1103 }],
  ['uuid', { problem: matching(uuid, 'does not match the UUID format'), patternSize: 80 }],
  ['byte', { problem: (text: string) => (isBase64(text) ? undefined : 'invalid base64'), patternSize: 84 }],
  [
    'date',
    { problem: (text: string) => (parseTimestamp(`${text}T00:00:00Z`) ? undefined : 'invalid date'), patternSize: 120 },
  ],
  [
    'datetime',
    { problem: (text: string) => (parseTimestamp(text) ? undefined : 'invalid datetime'), patternSize: 120 },
  ],
])

class FormatValue extends OpaqueValue {
  readonly typeName = 'kubernetes.NamedFormat'
  readonly name: string
  readonly format: Format

  constructor(name: string, format: Format) {
    super()
    this.name = name
    this.format = format
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof FormatValue && other.name === this.name
  }
}

function formatOf(name: Value | undefined): FormatValue | undefined {
  const format = typeof name === 'string' ? formats.get(name) : undefined
  return format && new FormatValue(String(name), format)
}

const named: readonly (readonly [string, FunctionDefinition])[] = [...formats].map(([name, format]) => [
  `format.${name}`,
  { overloads: ['(): kubernetes.NamedFormat'], call: () => new FormatValue(name, format) },
])

export const namedFormats: FunctionTable = {
  ...Object.fromEntries(named),
  'format.named': {
    overloads: ['(string): optional<kubernetes.NamedFormat>'],
    call: ([name]) => new Optional(formatOf(name)),
  },
  validate: {
    overloads: ['kubernetes.NamedFormat.(string): optional<list<string>>'],
    cost: ([format, text]) =>
      Math.ceil((1 + valueSize(text)) * traversalFactor) *
      Math.ceil((format instanceof FormatValue ? format.format.patternSize : 1) * patternFactor),
    call: ([format, text]) => {
      if (!(format instanceof FormatValue) || typeof text !== 'string') return noSuchOverload
      const problem = format.format.problem(text)
      return problem === undefined ? none : new Optional(new ArrayList([problem]))
    },
  },
}
