/** Reads an expression (the grammar of https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax) with its macros expanded. */
import { Double, intOf, isInt, type Value } from '../values/value.ts'
import { type Expression, expressionOf, type MapEntry } from './expression.ts'
import { expandedMacro } from './macros.ts'
import { SourceError } from './source-problem.ts'
import { type Token, tokensOf } from './tokens.ts'

/** As cel-go's limit on recursion. */
const deepest = 250

/** Throws SourceError. */
export function parseExpression(source: string): Expression {
  const parser = new Parser(tokensOf(source))
  const expression = parser.expression()
  parser.end()
  return expression
}

/** Names that stand for nothing yet (langdef.md: RESERVED). */
const reserved: ReadonlySet<string> = new Set([
  ...['as', 'break', 'const', 'continue', 'else', 'false', 'for', 'function', 'if', 'import', 'in', 'let'],
  ...['loop', 'package', 'namespace', 'null', 'return', 'true', 'var', 'void', 'while'],
])
const literalWords: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['true', true],
  ['false', false],
  ['null', null],
])

const relations = ['<', '<=', '>=', '>', '==', '!=', 'in'] as const
const binaryNames: { readonly [sign: string]: string } = {
  ...{ '<': '_<_', '<=': '_<=_', '>=': '_>=_', '>': '_>_', '==': '_==_', '!=': '_!=_', in: '@in' },
  ...{ '+': '_+_', '-': '_-_', '*': '_*_', '/': '_/_', '%': '_%_', '&&': '_&&_', '||': '_||_' },
}

class Parser {
  readonly #tokens: readonly Token[]
  #next = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  expression(): Expression {
    if (++this.#depth > deepest) throw this.#tooDeep()
    const condition = this.#logical('||', () => this.#logical('&&', () => this.#relation()))
    const mark = this.#take('?')
    if (mark !== undefined) {
      const whenTrue = this.#logical('||', () => this.#logical('&&', () => this.#relation()))
      this.#expect(':')
      const whenFalse = this.expression()
      this.#depth--
      return this.#call(mark.at, '_?_:_', undefined, [condition, whenTrue, whenFalse])
    }
    this.#depth--
    return condition
  }

  end(): void {
    const token = this.#peek()
    if (token.kind !== 'end') {
      throw new SourceError(token.at, `Syntax error: extraneous input '${token.text}' expecting <EOF>`)
    }
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? { kind: 'end', at: 0, text: '<EOF>' }
  }

  #is(text: string): boolean {
    const token = this.#peek()
    return token.text === text && (token.kind === 'sign' || token.kind === 'name')
  }

  #take(text: string): Token | undefined {
    if (!this.#is(text)) return undefined
    const token = this.#peek()
    this.#next++
    return token
  }

  #expect(text: string): Token {
    const token = this.#take(text)
    if (token !== undefined) return token
    const found = this.#peek()
    throw new SourceError(found.at, `Syntax error: mismatched input '${found.text}' expecting '${text}'`)
  }

  #tooDeep(): SourceError {
    return new SourceError(this.#peek().at, `expression recursion limit exceeded: ${deepest}`)
  }

  #made(node: Parameters<typeof expressionOf>[0]): Expression {
    const expression = expressionOf(node)
    if (expression.depth > 2 * deepest) throw this.#tooDeep()
    return expression
  }

  #call(at: number, name: string, target: Expression | undefined, args: readonly Expression[]): Expression {
    const made = expandedMacro(at, name, target, args) ?? expressionOf({ kind: 'call', at, name, target, args })
    if (made.depth > 2 * deepest) throw this.#tooDeep()
    return made
  }

  /** Terms of one operator as a tree that is as deep as it must be: there may be thousands. */
  #logical(sign: '&&' | '||', term: () => Expression): Expression {
    const terms = [term()]
    const marks: number[] = []
    for (let mark = this.#take(sign); mark !== undefined; mark = this.#take(sign)) {
      marks.push(mark.at)
      terms.push(term())
    }
    return this.#balanced(binaryNames[sign] ?? sign, terms, marks)
  }

  #balanced(name: string, terms: readonly Expression[], marks: readonly number[]): Expression {
    const [first] = terms
    if (first !== undefined && terms.length === 1) return first
    const middle = Math.ceil(terms.length / 2)
    const left = this.#balanced(name, terms.slice(0, middle), marks.slice(0, middle - 1))
    const right = this.#balanced(name, terms.slice(middle), marks.slice(middle))
    return this.#call(marks[middle - 1] ?? 0, name, undefined, [left, right])
  }

  #relation(): Expression {
    return this.#leftToRight(relations, () =>
      this.#leftToRight(['+', '-'], () => this.#leftToRight(['*', '/', '%'], () => this.#unary())),
    )
  }

  #leftToRight(signs: readonly string[], operand: () => Expression): Expression {
    let left = operand()
    for (;;) {
      const sign = signs.find((one) => this.#is(one))
      if (sign === undefined) return left
      const { at } = this.#expect(sign)
      left = this.#call(at, binaryNames[sign] ?? sign, undefined, [left, operand()])
    }
  }

  #unary(): Expression {
    for (const sign of ['!', '-'] as const) {
      const first = this.#take(sign)
      if (first === undefined) continue
      const number = sign === '-' ? this.#negativeNumber() : undefined
      if (number !== undefined) return this.#member(number)
      let count = 1
      while (this.#take(sign) !== undefined) count++
      const operand = this.#member(this.#primary())
      return count % 2 === 0 ? operand : this.#call(first.at, `${sign}_`, undefined, [operand])
    }
    return this.#member(this.#primary())
  }

  /** The minus sign belongs to the literal: the least integer has no positive one. */
  #negativeNumber(): Expression | undefined {
    const token = this.#peek()
    if (token.kind !== 'literal') return undefined
    const { value, at } = token
    const negative = isInt(value)
      ? intOf(-BigInt(value))
      : value instanceof Double
        ? new Double(-value.value)
        : undefined
    if (negative === undefined) return undefined
    this.#next++
    return this.#made({ kind: 'constant', at, value: negative })
  }

  #member(primary: Expression): Expression {
    let operand = primary
    for (;;) {
      const dot = this.#take('.')
      if (dot !== undefined) {
        operand = this.#selected(operand, dot)
        continue
      }
      const bracket = this.#take('[')
      if (bracket === undefined) return operand
      const isOptional = this.#take('?') !== undefined
      const index = this.expression()
      this.#expect(']')
      operand = this.#call(bracket.at, isOptional ? '_[?_]' : '_[_]', undefined, [operand, index])
    }
  }

  #selected(operand: Expression, { at }: Token): Expression {
    const optional = this.#take('?') !== undefined
    const field = this.#name()
    const open = optional ? undefined : this.#take('(')
    if (open === undefined) return this.#made({ kind: 'select', at, operand, field, testsOnly: false, optional })
    return this.#call(open.at, field, operand, this.#list(')').items)
  }

  #name(): string {
    const token = this.#peek()
    const isWord = token.kind === 'name' && token.text !== 'in' && !literalWords.has(token.text)
    if (!isWord) throw new SourceError(token.at, `Syntax error: mismatched input '${token.text}' expecting IDENTIFIER`)
    this.#next++
    return token.text
  }

  #primary(): Expression {
    const token = this.#peek()
    this.#next++
    if (token.kind === 'literal') return this.#literal(token.at, token.value)
    if (token.kind === 'name') {
      const word = literalWords.get(token.text)
      if (word !== undefined) return this.#literal(token.at, word)
      if (token.text !== 'in') return this.#named(token.at, token.text)
    }
    if (token.kind === 'sign') {
      if (token.text === '.') return this.#named(token.at, this.#name())
      if (token.text === '(') {
        const inner = this.expression()
        this.#expect(')')
        return inner
      }
      if (token.text === '[') return this.#made({ kind: 'list', at: token.at, ...this.#list(']') })
      if (token.text === '{') return this.#made({ kind: 'map', at: token.at, entries: this.#entries() })
    }
    throw new SourceError(token.at, `Syntax error: mismatched input '${token.text}' expecting an expression`)
  }

  #literal(at: number, value: Value): Expression {
    // 2^63 is read for the sake of its negative.
    if (typeof value === 'bigint' && intOf(value) === undefined) throw new SourceError(at, 'invalid int literal')
    return this.#made({ kind: 'constant', at, value })
  }

  #named(at: number, name: string): Expression {
    if (reserved.has(name)) throw new SourceError(at, `reserved identifier: ${name}`)
    const open = this.#take('(')
    if (open !== undefined) return this.#call(open.at, name, undefined, this.#list(')').items)
    const braces = this.#take('{')
    if (braces === undefined) return this.#made({ kind: 'identifier', at, name })
    throw new SourceError(at, `undeclared reference to '${name}' (in container '')`)
  }

  #list(closing: ')' | ']'): { readonly items: readonly Expression[]; readonly optional: ReadonlySet<number> } {
    const items: Expression[] = []
    const optional = new Set<number>()
    while (this.#take(closing) === undefined) {
      if (closing === ']' && this.#take('?') !== undefined) optional.add(items.length)
      items.push(this.expression())
      if (this.#take(',') !== undefined && !(closing === ')' && this.#is(')'))) continue
      this.#expect(closing)
      break
    }
    return { items, optional }
  }

  #entries(): readonly MapEntry[] {
    const entries: MapEntry[] = []
    while (this.#take('}') === undefined) {
      const optional = this.#take('?') !== undefined
      const key = this.expression()
      this.#expect(':')
      entries.push({ key, value: this.expression(), optional })
      if (this.#take(',') !== undefined) continue
      this.#expect('}')
      break
    }
    return entries
  }
}
