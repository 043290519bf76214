/**
 * The one reader of YAML, with its limits: static pods, bodies of requests, configuration files and kubeconfigs mean the same to it. It
 * reads as Kubernetes does (sigs.k8s.io/yaml with go-yaml v2); test/yaml-as-kubectl.test.ts compares it with kubectl.
 */
import { isUtf8 } from 'node:buffer'
import {
  type Alias,
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type ParsedNode,
  Parser,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import { clipped } from '../../api/problem.ts'
import { messageOf } from '../errors.ts'
import { eachInTurns } from '../limits/turn-limit.ts'
import { isIntegerText, type ScalarValue, yamlScalar } from './yaml-scalar.ts'

/** Limit of one text. Files of users are smaller than this, and the API accepts less (`body-limits.ts`). */
export const mostYamlBytes = 1024 * 1024
/** Levels of maps and lists; the schemas of Kubernetes have fewer than twenty. */
const mostYamlLevels = 100
/** Values that aliases repeat. Those of the text itself are limited by its bytes. */
const mostAliasedValues = 100_000
/** Limit of a text that is read in turns. */
const mostLexemes = 65_536

export type YamlOptions = {
  /** The last of equal keys counts, as in the bodies of requests. Without this they are an error. */
  readonly allowDuplicates?: true
  /** Called for each key that is given again, with the sentence of the error that it would be. */
  readonly onDuplicate?: (sentence: string) => void
}

/** One sentence in one line: where and what, in the words of go-yaml where it has some. */
export class YamlError extends Error {
  override readonly name = 'YamlError'
}

/**
 * The content of the first document of a YAML text, as its JSON would give it; null for an empty one. Throws YamlError. Bytes that are not
 * UTF-8 are refused, as by go-yaml: another character in their place would be another value.
 */
export function readYaml(source: string | Buffer, options: YamlOptions = {}): unknown {
  const text = textOf(source)
  const lines = new LineCounter()
  return contentOf(firstDocument(tokensOf(text, lines), text.length), lines, options)
}

/**
 * The same in several turns of the event loop. What is made of the tokens takes one turn, so that there may be `mostLexemes` of them: a
 * manifest has a few thousand, and a long text in it is one.
 */
export async function readYamlInTurns(source: string | Buffer, options: YamlOptions = {}): Promise<unknown> {
  const text = textOf(source)
  const lines = new LineCounter()
  const parser = parserOf(lines)
  const tokens: CST.Token[] = []
  let lexemes = 0
  await eachInTurns(new Lexer().lex(text), (lexeme) => {
    if (++lexemes > mostLexemes) throw new YamlError(`it has more than ${mostLexemes} words and signs`)
    tokens.push(...nextTokens(parser, lexeme))
  })
  tokens.push(...parser.end())
  return contentOf(firstDocument(tokens, text.length), lines, options)
}

function textOf(source: string | Buffer): string {
  if (typeof source !== 'string' && !isUtf8(source)) throw new YamlError('it is not UTF-8')
  const text = source.toString('utf8')
  if (Buffer.byteLength(text) > mostYamlBytes) throw new YamlError(`it is longer than ${mostYamlBytes} bytes`)
  return text
}

function contentOf({ contents, errors }: Document.Parsed, lines: LineCounter, options: YamlOptions): unknown {
  const [error] = errors
  if (error === undefined) return contents === null ? null : new Reading(lines, options).value(contents)
  const { line, col } = lines.linePos(error.pos[0])
  throw new YamlError(`${firstLine(error)} at line ${line}, column ${col}`)
}

const tooDeep = `it has more than ${mostYamlLevels} levels`

/** What follows the first document is not read, as in sigs.k8s.io/yaml. "failsafe": all scalars are text, `yamlScalar` has their values. */
function firstDocument(tokens: Iterable<CST.Token>, length: number): Document.Parsed {
  const options = {
    version: '1.1',
    schema: 'failsafe',
    merge: false,
    resolveKnownTags: false,
    uniqueKeys: false,
  } as const
  for (const document of new Composer(options).compose(tokens, true, length)) return document
  throw new YamlError('it has no document') // not reached: `true` has the parser make one
}

function* tokensOf(text: string, lines: LineCounter): Generator<CST.Token> {
  const parser = parserOf(lines)
  for (const lexeme of new Lexer().lex(text)) yield* nextTokens(parser, lexeme)
  yield* parser.end()
}

function parserOf(lines: LineCounter): Parser {
  lines.addNewLine(0)
  return new Parser(lines.addNewLine)
}

/** What reads the tokens calls itself for each level. */
function* nextTokens(parser: Parser, lexeme: string): Generator<CST.Token> {
  yield* parser.next(lexeme)
  // Around the levels is the document, within them a scalar.
  if (parser.stack.length > mostYamlLevels + 2) throw new YamlError(tooDeep)
}

/** One pass over a document, from nodes to values. */
class Reading {
  private readonly anchors = new Map<string, ParsedNode>()
  /** What each alias means: an anchor may be set again further down. */
  private readonly targets = new Map<Alias.Parsed, ParsedNode>()
  private readonly expanding = new Set<ParsedNode>()
  private readonly lines: LineCounter
  private readonly options: YamlOptions
  private levels = 0
  private aliased = 0

  constructor(lines: LineCounter, options: YamlOptions) {
    this.lines = lines
    this.options = options
  }

  value(node: ParsedNode | null): unknown {
    if (node === null) return null
    this.countAliased()
    if (isAlias(node)) return this.expanded(node, (target) => this.value(target))
    if (this.expanding.size === 0 && node.anchor !== undefined) this.anchors.set(node.anchor, node)
    if (isScalar(node)) return this.scalar(node)
    if (++this.levels > mostYamlLevels) throw new YamlError(tooDeep)
    // Not by assignment: a key may be __proto__.
    const content = isSeq(node) ? node.items.map((item) => this.value(item)) : Object.fromEntries(this.entries(node))
    this.levels--
    return content
  }

  private scalar(node: Scalar.Parsed): ScalarValue {
    let value: ScalarValue
    try {
      value = yamlScalar(String(node.value), node.type === 'PLAIN', node.tag)
    } catch (error) {
      throw this.problem(node, messageOf(error))
    }
    // The error of Go's JSON for .inf and .nan.
    if (typeof value === 'number' && !Number.isFinite(value))
      throw this.problem(node, `unsupported value: ${node.source}`)
    return value
  }

  private expanded<T>(alias: Alias.Parsed, read: (target: ParsedNode) => T): T {
    const target = this.targets.get(alias) ?? this.anchors.get(alias.source)
    if (target === undefined) throw this.problem(alias, `unknown anchor '${alias.source}' referenced`)
    if (this.expanding.has(target)) throw this.problem(alias, `anchor '${alias.source}' value contains itself`)
    this.targets.set(alias, target)
    this.expanding.add(target)
    if (++this.levels > mostYamlLevels) throw new YamlError(tooDeep)
    const value = read(target)
    this.levels--
    this.expanding.delete(target)
    return value
  }

  private countAliased(): void {
    if (this.expanding.size > 0 && ++this.aliased > mostAliasedValues) {
      throw new YamlError('document contains excessive aliasing')
    }
  }

  private entries(node: YAMLMap.Parsed): ReadonlyMap<string, unknown> {
    const entries = new Map<string, unknown>()
    this.readInto(entries, node)
    return entries
  }

  private readInto(entries: Map<string, unknown>, node: YAMLMap.Parsed): void {
    this.countAliased()
    for (const { key, value } of node.items) {
      if (isMerge(key)) this.merge(entries, value, key)
      else {
        const name = this.key(key)
        const content = this.value(value)
        if (entries.has(name)) this.repeated(name, value ?? key)
        entries.set(name, content)
      }
    }
  }

  private repeated(name: string, node: ParsedNode): void {
    const { allowDuplicates, onDuplicate } = this.options
    if (allowDuplicates && onDuplicate === undefined) return
    const problem = this.problem(node, `key ${JSON.stringify(name)} already set in map`)
    if (!allowDuplicates) throw problem
    onDuplicate?.(problem.message)
  }

  /** A merged key counts where it stands: it replaces keys above it, and those below replace it. The first of several maps counts. */
  private merge(entries: Map<string, unknown>, source: ParsedNode | null, key: ParsedNode): void {
    const mergeMap = (map: ParsedNode | null): void => {
      if (isAlias(map)) this.expanded(map, mergeMap)
      else if (isMap(map)) this.readInto(entries, map)
      else throw this.problem(key, 'map merge requires map or sequence of maps as the value')
    }
    if (isSeq(source)) for (const map of [...source.items].reverse()) mergeMap(map)
    else mergeMap(source)
  }

  private key(node: ParsedNode): string {
    if (isAlias(node)) return this.expanded(node, (target) => this.key(target))
    if (!isScalar(node)) throw this.problem(node, 'invalid map key: it is a map or a list')
    if (node.anchor !== undefined) this.anchors.set(node.anchor, node)
    const value = this.scalar(node)
    if (value === null || (typeof value === 'number' && value >= 2 ** 63)) {
      throw this.problem(node, `unsupported map key: ${clipped(String(node.value))}`)
    }
    return typeof value === 'number' && !isIntegerText(String(node.value)) ? floatKey(value) : String(value)
  }

  private problem(node: ParsedNode, message: string): YamlError {
    return new YamlError(`line ${this.lines.linePos(node.range[0]).line}: ${message}`)
  }
}

function isMerge(key: ParsedNode): boolean {
  return (
    isScalar(key) && key.value === '<<' && (key.tag === mergeTag || (key.tag === undefined && key.type === 'PLAIN'))
  )
}

const mergeTag = 'tag:yaml.org,2002:merge'

/** As Go writes a number of 32 bits in its shortest form: 1.5, 1e+06, 1e-05. */
function floatKey(value: number): string {
  const float = Math.fround(value)
  let digits = 1
  while (digits < 9 && Math.fround(Number(float.toPrecision(digits))) !== float) digits++
  const [mantissa = '', exponent = '0'] = float.toExponential(digits - 1).split('e')
  const power = Number(exponent)
  if (power >= -4 && power < 6) return String(Number(float.toPrecision(digits)))
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

function firstLine(error: Error): string {
  return (error.message.split('\n')[0] ?? '').replace(/:$/, '')
}
