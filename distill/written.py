"""Programs written by hand: right answers in several approaches for every task, since the teacher finds few for some.

`mix.py` mixes them in, with names varied, and the model card says how many there are. Each entry point's name is
the task's; programs of one task are separated by a line of dashes.
"""

import ast
import random

PROGRAMS = """
# linalg/matmul
def matmul(A, B):
    return [[sum(a * b for a, b in zip(row, col)) for col in zip(*B)] for row in A]
---
def matmul(A, B):
    cols = list(zip(*B))
    return [[sum(x * y for x, y in zip(row, col)) for col in cols] for row in A]
---
from operator import mul

def matmul(A, B):
    cols = list(zip(*B))
    return [[sum(map(mul, row, col)) for col in cols] for row in A]
---
def matmul(A, B):
    n = len(B[0])
    result = [[0.0] * n for _ in range(len(A))]
    for i in range(len(A)):
        for j in range(n):
            for k in range(len(B)):
                result[i][j] += A[i][k] * B[k][j]
    return result
---
def matmul(A, B):
    result = []
    for row in A:
        new_row = [0.0] * len(B[0])
        for value, other in zip(row, B):
            for j, item in enumerate(other):
                new_row[j] += value * item
        result.append(new_row)
    return result
# linalg/transpose
def transpose(A):
    return [list(row) for row in zip(*A)]
---
def transpose(A):
    return list(map(list, zip(*A)))
---
def transpose(A):
    rows, cols = len(A), len(A[0])
    return [[A[i][j] for i in range(rows)] for j in range(cols)]
---
def transpose(A):
    return [[row[j] for row in A] for j in range(len(A[0]))]
# linalg/gram_matrix
def gram_matrix(A):
    return [[sum(a * b for a, b in zip(x, y)) for y in A] for x in A]
---
from operator import mul

def gram_matrix(A):
    return [[sum(map(mul, x, y)) for y in A] for x in A]
---
def gram_matrix(A):
    n = len(A)
    G = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            total = sum(a * b for a, b in zip(A[i], A[j]))
            G[i][j] = total
            G[j][i] = total
    return G
---
from operator import mul

def gram_matrix(A):
    n = len(A)
    G = [[0] * n for _ in range(n)]
    for i in range(n):
        row = A[i]
        for j in range(i + 1):
            G[i][j] = G[j][i] = sum(map(mul, row, A[j]))
    return G
# linalg/matrix_power
def matrix_power(A, n, m):
    size = len(A)
    result = [[int(i == j) for j in range(size)] for i in range(size)]
    base = [row[:] for row in A]
    while n > 0:
        if n % 2 == 1:
            result = multiply(result, base, m)
        base = multiply(base, base, m)
        n //= 2
    return result

def multiply(X, Y, m):
    return [[sum(a * b for a, b in zip(row, col)) % m for col in zip(*Y)] for row in X]
---
def matrix_power(A, n, m):
    def multiply(X, Y):
        size = len(X)
        Z = [[0] * size for _ in range(size)]
        for i in range(size):
            for j in range(size):
                for k in range(size):
                    Z[i][j] = (Z[i][j] + X[i][k] * Y[k][j]) % m
        return Z

    size = len(A)
    result = [[1 if i == j else 0 for j in range(size)] for i in range(size)]
    while n:
        if n & 1:
            result = multiply(result, A)
        A = multiply(A, A)
        n >>= 1
    return result
---
def matrix_power(A, n, m):
    size = len(A)
    result = [[1 if i == j else 0 for j in range(size)] for i in range(size)]
    for _ in range(n):
        result = [[sum(a * b for a, b in zip(row, col)) % m for col in zip(*A)] for row in result]
    return result
# linalg/determinant
def determinant(A):
    n = len(A)
    if n == 1:
        return A[0][0]
    if n == 2:
        return A[0][0] * A[1][1] - A[0][1] * A[1][0]
    total = 0
    for j in range(n):
        minor = [row[:j] + row[j + 1:] for row in A[1:]]
        total += (-1) ** j * A[0][j] * determinant(minor)
    return total
# sequences/prefix_sums
from itertools import accumulate

def prefix_sums(xs):
    return list(accumulate(xs))
---
def prefix_sums(xs):
    result = []
    total = 0
    for x in xs:
        total += x
        result.append(total)
    return result
# sequences/max_subarray
def max_subarray(xs):
    best = current = xs[0]
    for x in xs[1:]:
        current = max(x, current + x)
        best = max(best, current)
    return best
---
def max_subarray(xs):
    best = current = xs[0]
    for x in xs[1:]:
        current = current + x if current > 0 else x
        if current > best:
            best = current
    return best
# sequences/moving_average
def moving_average(xs, k):
    total = sum(xs[:k])
    result = [total / k]
    for i in range(k, len(xs)):
        total += xs[i] - xs[i - k]
        result.append(total / k)
    return result
---
def moving_average(xs, k):
    return [sum(xs[i:i + k]) / k for i in range(len(xs) - k + 1)]
---
from itertools import accumulate

def moving_average(xs, k):
    sums = [0] + list(accumulate(xs))
    return [(b - a) / k for a, b in zip(sums, sums[k:])]
# sequences/remove_duplicates
def remove_duplicates(xs):
    return list(dict.fromkeys(xs))
---
def remove_duplicates(xs):
    seen = set()
    result = []
    for x in xs:
        if x not in seen:
            seen.add(x)
            result.append(x)
    return result
# sequences/count_inversions
def count_inversions(xs):
    count = 0
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            if xs[i] > xs[j]:
                count += 1
    return count
# strings/word_count
from collections import Counter

def word_count(text):
    return dict(Counter(text.split()))
---
def word_count(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts
# strings/caesar_cipher
def caesar_cipher(text, shift):
    lower = "abcdefghijklmnopqrstuvwxyz"
    upper = lower.upper()
    table = str.maketrans(lower + upper, lower[shift:] + lower[:shift] + upper[shift:] + upper[:shift])
    return text.translate(table)
---
import string

def caesar_cipher(text, shift):
    lower = string.ascii_lowercase
    upper = string.ascii_uppercase
    moved = lower[shift:] + lower[:shift] + upper[shift:] + upper[:shift]
    return text.translate(str.maketrans(lower + upper, moved))
---
def caesar_cipher(text, shift):
    result = []
    for char in text:
        if 'a' <= char <= 'z':
            result.append(chr((ord(char) - 97 + shift) % 26 + 97))
        elif 'A' <= char <= 'Z':
            result.append(chr((ord(char) - 65 + shift) % 26 + 65))
        else:
            result.append(char)
    return ''.join(result)
# strings/run_length_encode
from itertools import groupby

def run_length_encode(text):
    return [[char, len(list(group))] for char, group in groupby(text)]
---
def run_length_encode(text):
    result = []
    for char in text:
        if result and result[-1][0] == char:
            result[-1][1] += 1
        else:
            result.append([char, 1])
    return result
---
def run_length_encode(text):
    if not text:
        return []
    result = []
    current = text[0]
    count = 1
    for char in text[1:]:
        if char == current:
            count += 1
        else:
            result.append([current, count])
            current = char
            count = 1
    result.append([current, count])
    return result
# strings/count_vowels
def count_vowels(text):
    return sum(text.count(vowel) for vowel in 'aeiouAEIOU')
---
def count_vowels(text):
    return sum(map(text.count, 'aeiouAEIOU'))
---
def count_vowels(text):
    vowels = set('aeiouAEIOU')
    return sum(1 for char in text if char in vowels)
# strings/longest_palindrome
def longest_palindrome(text):
    best = 0
    n = len(text)
    for center in range(n):
        for right in (center, center + 1):
            left = center
            end = right
            while left >= 0 and end < n and text[left] == text[end]:
                best = max(best, end - left + 1)
                left -= 1
                end += 1
    return best
---
def longest_palindrome(text):
    n = len(text)
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            part = text[i:i + length]
            if part == part[::-1]:
                return length
    return 0
# strings/group_anagrams
def group_anagrams(words):
    groups = {}
    for word in words:
        key = ''.join(sorted(word))
        groups.setdefault(key, []).append(word)
    return list(groups.values())
# graphs/bfs_distances
from collections import deque

def bfs_distances(graph, start):
    distances = [-1] * len(graph)
    distances[start] = 0
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for neighbor in graph[node]:
            if distances[neighbor] == -1:
                distances[neighbor] = distances[node] + 1
                queue.append(neighbor)
    return distances
---
def bfs_distances(graph, start):
    distances = [-1] * len(graph)
    distances[start] = 0
    level = [start]
    step = 0
    while level:
        step += 1
        following = []
        for node in level:
            for neighbor in graph[node]:
                if distances[neighbor] < 0:
                    distances[neighbor] = step
                    following.append(neighbor)
        level = following
    return distances
# graphs/count_components
def count_components(n, edges):
    parent = list(range(n))
    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x
    count = n
    for a, b in edges:
        x, y = find(a), find(b)
        if x != y:
            parent[x] = y
            count -= 1
    return count
---
def count_components(n, edges):
    graph = [[] for _ in range(n)]
    for a, b in edges:
        graph[a].append(b)
        graph[b].append(a)
    visited = [False] * n
    count = 0
    for start in range(n):
        if visited[start]:
            continue
        count += 1
        visited[start] = True
        stack = [start]
        while stack:
            node = stack.pop()
            for neighbor in graph[node]:
                if not visited[neighbor]:
                    visited[neighbor] = True
                    stack.append(neighbor)
    return count
# graphs/dijkstra
import heapq

def dijkstra(graph, start):
    distances = [float('inf')] * len(graph)
    distances[start] = 0
    queue = [(0, start)]
    while queue:
        distance, node = heapq.heappop(queue)
        if distance > distances[node]:
            continue
        for neighbor, weight in graph[node]:
            new_distance = distance + weight
            if new_distance < distances[neighbor]:
                distances[neighbor] = new_distance
                heapq.heappush(queue, (new_distance, neighbor))
    return [d if d < float('inf') else -1 for d in distances]
---
from heapq import heappop, heappush

def dijkstra(graph, start):
    result = [-1] * len(graph)
    heap = [(0, start)]
    while heap:
        distance, node = heappop(heap)
        if result[node] != -1:
            continue
        result[node] = distance
        for neighbor, weight in graph[node]:
            if result[neighbor] == -1:
                heappush(heap, (distance + weight, neighbor))
    return result
# graphs/topological_order
import heapq

def topological_order(n, edges):
    graph = [[] for _ in range(n)]
    degree = [0] * n
    for a, b in edges:
        graph[a].append(b)
        degree[b] += 1
    heap = [i for i in range(n) if degree[i] == 0]
    heapq.heapify(heap)
    order = []
    while heap:
        node = heapq.heappop(heap)
        order.append(node)
        for neighbor in graph[node]:
            degree[neighbor] -= 1
            if degree[neighbor] == 0:
                heapq.heappush(heap, neighbor)
    return order
---
def topological_order(n, edges):
    degree = [0] * n
    for a, b in edges:
        degree[b] += 1
    remaining = list(range(n))
    order = []
    while remaining:
        node = min(i for i in remaining if degree[i] == 0)
        remaining.remove(node)
        order.append(node)
        for a, b in edges:
            if a == node:
                degree[b] -= 1
    return order
# graphs/floyd_warshall
def floyd_warshall(W):
    n = len(W)
    D = [row[:] for row in W]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                D[i][j] = min(D[i][j], D[i][k] + D[k][j])
    return D
# dynamic/longest_common_subsequence
def longest_common_subsequence(a, b):
    previous = [0] * (len(b) + 1)
    for x in a:
        current = [0]
        for j, y in enumerate(b):
            if x == y:
                current.append(previous[j] + 1)
            else:
                current.append(max(previous[j + 1], current[j]))
        previous = current
    return previous[-1]
---
def longest_common_subsequence(a, b):
    m, n = len(a), len(b)
    dp = [[0] * (n + 1) for _ in range(m + 1)]
    for i in range(m):
        for j in range(n):
            if a[i] == b[j]:
                dp[i + 1][j + 1] = dp[i][j] + 1
            else:
                dp[i + 1][j + 1] = max(dp[i][j + 1], dp[i + 1][j])
    return dp[m][n]
# dynamic/edit_distance
def edit_distance(a, b):
    m, n = len(a), len(b)
    dp = [[0] * (n + 1) for _ in range(m + 1)]
    for i in range(m + 1):
        dp[i][0] = i
    for j in range(n + 1):
        dp[0][j] = j
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            dp[i][j] = min(dp[i - 1][j] + 1, dp[i][j - 1] + 1, dp[i - 1][j - 1] + cost)
    return dp[m][n]
# dynamic/knapsack
def knapsack(weights, values, capacity):
    dp = [0] * (capacity + 1)
    for weight, value in zip(weights, values):
        for c in range(capacity, weight - 1, -1):
            dp[c] = max(dp[c], dp[c - weight] + value)
    return dp[capacity]
---
def knapsack(weights, values, capacity):
    dp = [0] * (capacity + 1)
    for i in range(len(weights)):
        for c in range(capacity, weights[i] - 1, -1):
            taken = dp[c - weights[i]] + values[i]
            if taken > dp[c]:
                dp[c] = taken
    return dp[-1]
---
def knapsack(weights, values, capacity):
    n = len(weights)
    dp = [[0] * (capacity + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for c in range(capacity + 1):
            dp[i][c] = dp[i - 1][c]
            if weights[i - 1] <= c:
                dp[i][c] = max(dp[i][c], dp[i - 1][c - weights[i - 1]] + values[i - 1])
    return dp[n][capacity]
# dynamic/coin_change
def coin_change(coins, amount):
    dp = [float('inf')] * (amount + 1)
    dp[0] = 0
    for coin in coins:
        for i in range(coin, amount + 1):
            dp[i] = min(dp[i], dp[i - coin] + 1)
    return dp[amount] if dp[amount] != float('inf') else -1
---
def coin_change(coins, amount):
    if amount == 0:
        return 0
    seen = {0}
    level = {0}
    count = 0
    while level:
        count += 1
        level = {total + coin for total in level for coin in coins if total + coin <= amount} - seen
        if amount in level:
            return count
        seen |= level
    return -1
---
def coin_change(coins, amount):
    mask = (1 << (amount + 1)) - 1
    reached = 1
    count = 0
    while not reached >> amount & 1:
        following = reached
        for coin in coins:
            following |= reached << coin
        following &= mask
        if following == reached:
            return -1
        reached = following
        count += 1
    return count
# dynamic/subset_sum
def subset_sum(xs, target):
    sums = {0}
    for x in xs:
        sums |= {total + x for total in sums if total + x <= target}
    return target in sums
---
def subset_sum(xs, target):
    bits = 1
    for x in xs:
        bits |= bits << x
    return bits >> target & 1 == 1
---
def subset_sum(xs, target):
    dp = [False] * (target + 1)
    dp[0] = True
    for x in xs:
        for total in range(target, x - 1, -1):
            if dp[total - x]:
                dp[total] = True
    return dp[target]
# dynamic/longest_increasing_subsequence
def longest_increasing_subsequence(xs):
    if not xs:
        return 0
    dp = [1] * len(xs)
    for i in range(1, len(xs)):
        for j in range(i):
            if xs[j] < xs[i]:
                dp[i] = max(dp[i], dp[j] + 1)
    return max(dp)
# numbers/fibonacci_mod
def fibonacci_mod(n, m):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % m
    return a % m
---
def fibonacci_mod(n, m):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a % m
# numbers/count_primes
def count_primes(n):
    if n < 2:
        return 0
    sieve = [True] * (n + 1)
    sieve[0] = sieve[1] = False
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            for j in range(i * i, n + 1, i):
                sieve[j] = False
    return sum(sieve)
---
def count_primes(n):
    if n < 2:
        return 0
    sieve = bytearray([1]) * (n + 1)
    sieve[0] = sieve[1] = 0
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            sieve[i * i::i] = bytes(len(range(i * i, n + 1, i)))
    return sum(sieve)
# numbers/divisors
def divisors(n):
    small = []
    large = []
    i = 1
    while i * i <= n:
        if n % i == 0:
            small.append(i)
            if i != n // i:
                large.append(n // i)
        i += 1
    return small + large[::-1]
---
def divisors(n):
    result = set()
    for i in range(1, int(n ** 0.5) + 1):
        if n % i == 0:
            result.add(i)
            result.add(n // i)
    return sorted(result)
---
def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]
# numbers/prime_factors
def prime_factors(n):
    factors = []
    d = 2
    while d * d <= n:
        while n % d == 0:
            factors.append(d)
            n //= d
        d += 1
    if n > 1:
        factors.append(n)
    return factors
# numbers/collatz_longest
def collatz_longest(limit):
    steps = {1: 0}
    best = 1
    for start in range(2, limit + 1):
        n = start
        path = []
        while n not in steps:
            path.append(n)
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        count = steps[n]
        for value in reversed(path):
            count += 1
            steps[value] = count
        if steps[start] > steps[best]:
            best = start
    return best
---
def collatz_longest(limit):
    best = 1
    best_length = 0
    for start in range(1, limit + 1):
        n = start
        length = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            length += 1
        if length > best_length:
            best = start
            best_length = length
    return best
# numbers/count_coprime_pairs
from math import gcd

def count_coprime_pairs(xs):
    count = 0
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            if gcd(xs[i], xs[j]) == 1:
                count += 1
    return count
---
from itertools import combinations
from math import gcd

def count_coprime_pairs(xs):
    return sum(1 for a, b in combinations(xs, 2) if gcd(a, b) == 1)
# geometry/closest_pair
from itertools import combinations
from math import dist

def closest_pair(points):
    return min(dist(p, q) for p, q in combinations(points, 2))
---
import math

def closest_pair(points):
    points = sorted(points)
    best = float('inf')
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            dx = points[j][0] - points[i][0]
            if dx >= best:
                break
            best = min(best, math.hypot(dx, points[j][1] - points[i][1]))
    return best
---
import math

def closest_pair(points):
    best = float('inf')
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            best = min(best, math.dist(points[i], points[j]))
    return best
# geometry/farthest_pair
import math

def farthest_pair(points):
    best = 0.0
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            best = max(best, math.dist(points[i], points[j]))
    return best
# geometry/polygon_area
def polygon_area(points):
    total = 0
    for (x1, y1), (x2, y2) in zip(points, points[1:] + points[:1]):
        total += x1 * y2 - x2 * y1
    return abs(total) / 2
---
def polygon_area(points):
    n = len(points)
    area = 0
    for i in range(n):
        x1, y1 = points[i]
        x2, y2 = points[(i + 1) % n]
        area += x1 * y2 - x2 * y1
    return abs(area) / 2.0
---
def polygon_area(points):
    area = 0
    x0, y0 = points[-1]
    for x, y in points:
        area += x0 * y - x * y0
        x0, y0 = x, y
    return abs(area) / 2
# geometry/manhattan_sum
def manhattan_sum(points):
    total = 0
    for axis in (0, 1):
        values = sorted(p[axis] for p in points)
        prefix = 0
        for i, value in enumerate(values):
            total += value * i - prefix
            prefix += value
    return total
---
from itertools import combinations

def manhattan_sum(points):
    return sum(abs(a - c) + abs(b - d) for (a, b), (c, d) in combinations(points, 2))
---
def manhattan_sum(points):
    total = 0
    for i in range(len(points)):
        x1, y1 = points[i]
        for j in range(i + 1, len(points)):
            x2, y2 = points[j]
            total += abs(x1 - x2) + abs(y1 - y2)
    return total
# geometry/convex_hull
def convex_hull(points):
    points = sorted(points)
    def cross(o, a, b):
        return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])
    lower = []
    for p in points:
        while len(lower) >= 2 and cross(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    upper = []
    for p in reversed(points):
        while len(upper) >= 2 and cross(upper[-2], upper[-1], p) <= 0:
            upper.pop()
        upper.append(p)
    return lower[:-1] + upper[:-1]
# sorting/sort_list
def sort_list(xs):
    return sorted(xs)
---
def sort_list(xs):
    result = xs[:]
    for i in range(1, len(result)):
        value = result[i]
        j = i - 1
        while j >= 0 and result[j] > value:
            result[j + 1] = result[j]
            j -= 1
        result[j + 1] = value
    return result
---
def sort_list(xs):
    if len(xs) <= 1:
        return xs
    pivot = xs[len(xs) // 2]
    left = [x for x in xs if x < pivot]
    middle = [x for x in xs if x == pivot]
    right = [x for x in xs if x > pivot]
    return sort_list(left) + middle + sort_list(right)
# sorting/kth_smallest
def kth_smallest(xs, k):
    return sorted(xs)[k - 1]
---
import heapq

def kth_smallest(xs, k):
    return heapq.nsmallest(k, xs)[-1]
---
import heapq

def kth_smallest(xs, k):
    heap = xs[:]
    heapq.heapify(heap)
    for _ in range(k - 1):
        heapq.heappop(heap)
    return heap[0]
# sorting/two_sum
def two_sum(xs, target):
    seen = {}
    result = [-1, -1]
    for i in range(len(xs) - 1, -1, -1):
        other = target - xs[i]
        if other in seen:
            result = [i, seen[other]]
        seen[xs[i]] = i
    return result
---
def two_sum(xs, target):
    for i, x in enumerate(xs):
        other = target - x
        if other in xs[i + 1:]:
            return [i, xs.index(other, i + 1)]
    return [-1, -1]
---
def two_sum(xs, target):
    n = len(xs)
    for i in range(n):
        for j in range(i + 1, n):
            if xs[i] + xs[j] == target:
                return [i, j]
    return [-1, -1]
# sorting/merge_intervals
def merge_intervals(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged
---
def merge_intervals(intervals):
    if not intervals:
        return []
    intervals = sorted(intervals, key=lambda x: x[0])
    result = [list(intervals[0])]
    for start, end in intervals[1:]:
        last = result[-1]
        if start <= last[1]:
            last[1] = max(last[1], end)
        else:
            result.append([start, end])
    return result
# sorting/search_all
from bisect import bisect_left

def search_all(xs, queries):
    result = []
    for query in queries:
        i = bisect_left(xs, query)
        if i < len(xs) and xs[i] == query:
            result.append(i)
        else:
            result.append(-1)
    return result
# sorting/merge_sorted_lists
import heapq

def merge_sorted_lists(lists):
    return list(heapq.merge(*lists))
# simulation/game_of_life
def game_of_life(grid):
    rows, cols = len(grid), len(grid[0])
    result = [[0] * cols for _ in range(rows)]
    for i in range(rows):
        for j in range(cols):
            count = 0
            for x in range(max(0, i - 1), min(rows, i + 2)):
                for y in range(max(0, j - 1), min(cols, j + 2)):
                    count += grid[x][y]
            count -= grid[i][j]
            if count == 3 or (count == 2 and grid[i][j]):
                result[i][j] = 1
    return result
---
def game_of_life(grid):
    cols = len(grid[0])
    empty = [0] * (cols + 2)
    padded = [empty] + [[0] + row + [0] for row in grid] + [empty]
    result = []
    for i, row in enumerate(grid):
        above, here, below = padded[i], padded[i + 1], padded[i + 2]
        sums = [a + b + c for a, b, c in zip(above, here, below)]
        new_row = []
        for j, cell in enumerate(row):
            count = sums[j] + sums[j + 1] + sums[j + 2] - cell
            new_row.append(1 if count == 3 or (cell and count == 2) else 0)
        result.append(new_row)
    return result
---
def game_of_life(grid):
    rows, cols = len(grid), len(grid[0])
    counts = [[0] * cols for _ in range(rows)]
    for i in range(rows):
        for j in range(cols):
            if grid[i][j]:
                for x in range(max(0, i - 1), min(rows, i + 2)):
                    for y in range(max(0, j - 1), min(cols, j + 2)):
                        counts[x][y] += 1
    result = [[0] * cols for _ in range(rows)]
    for i in range(rows):
        for j in range(cols):
            if counts[i][j] == 3 or (grid[i][j] and counts[i][j] == 4):
                result[i][j] = 1
    return result
# simulation/josephus
def josephus(n, k):
    result = 0
    for i in range(2, n + 1):
        result = (result + k) % i
    return result + 1
---
def josephus(n, k):
    people = list(range(1, n + 1))
    index = 0
    while len(people) > 1:
        index = (index + k - 1) % len(people)
        people.pop(index)
    return people[0]
---
from collections import deque

def josephus(n, k):
    circle = deque(range(1, n + 1))
    while len(circle) > 1:
        circle.rotate(1 - k)
        circle.popleft()
    return circle[0]
# simulation/open_doors
def open_doors(n):
    result = []
    i = 1
    while i * i <= n:
        result.append(i * i)
        i += 1
    return result
---
from math import isqrt

def open_doors(n):
    return [i * i for i in range(1, isqrt(n) + 1)]
---
def open_doors(n):
    doors = [False] * (n + 1)
    for step in range(1, n + 1):
        for door in range(step, n + 1, step):
            doors[door] = not doors[door]
    return [i for i in range(1, n + 1) if doors[i]]
# simulation/flood_fill
def flood_fill(grid, row, column, color):
    result = [r[:] for r in grid]
    old = grid[row][column]
    if old == color:
        return result
    stack = [(row, column)]
    while stack:
        i, j = stack.pop()
        if 0 <= i < len(grid) and 0 <= j < len(grid[0]) and result[i][j] == old:
            result[i][j] = color
            stack += [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]
    return result
---
from collections import deque

def flood_fill(grid, row, column, color):
    rows, cols = len(grid), len(grid[0])
    old = grid[row][column]
    result = [list(r) for r in grid]
    if old == color:
        return result
    queue = deque([(row, column)])
    result[row][column] = color
    while queue:
        i, j = queue.popleft()
        for x, y in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if 0 <= x < rows and 0 <= y < cols and result[x][y] == old:
                result[x][y] = color
                queue.append((x, y))
    return result
# simulation/cellular_automaton
def cellular_automaton(cells, rule, steps):
    for _ in range(steps):
        padded = [0] + cells + [0]
        cells = [(rule >> (4 * padded[i - 1] + 2 * padded[i] + padded[i + 1])) & 1 for i in range(1, len(padded) - 1)]
    return cells
"""

_OTHER_NAMES = {
    "result": ("res", "output", "answer", "ans", "out"),
    "total": ("s", "acc", "total_sum", "current_sum"),
    "count": ("cnt", "c", "num"),
    "best": ("max_value", "best_so_far", "longest", "ans"),
    "cols": ("columns", "m", "cols_b"),
    "rows": ("n", "num_rows", "height"),
    "distances": ("dist", "distance_to", "d_list"),
    "neighbor": ("next_node", "v", "nb"),
    "node": ("u", "current_node", "vertex"),
    "distance": ("dist_u", "cost", "d0"),
    "dp": ("table", "memo", "f"),
    "seen": ("visited", "known", "found"),
    "merged": ("result", "output", "stack_of_intervals"),
    "current": ("cur", "curr", "value"),
    "values": ("coords", "items", "vals"),
    "queue": ("q", "pending", "todo"),
    "heap": ("pq", "h", "ready"),
    "stack": ("todo", "pending", "cells_to_do"),
    "order": ("result", "ordering", "topo"),
    "row": ("r", "line", "a_row"),
    "col": ("c", "column", "b_col"),
    "people": ("circle", "players", "persons"),
    "index": ("pos", "idx", "at"),
    "sieve": ("is_prime", "prime", "flags"),
    "counts": ("freq", "tally", "neighbors"),
    "previous": ("prev", "last_row", "dp"),
    "base": ("power", "current", "square"),
    "size": ("n_rows", "dim", "k"),
    "char": ("ch", "c", "letter"),
    "factors": ("result", "primes", "out"),
}


def programs() -> dict[str, list[str]]:
    """Task id -> sources, as written."""
    found: dict[str, list[str]] = {}
    for part in PROGRAMS.split("\n# ")[1:]:
        task, _, body = part.partition("\n")
        found[task.strip()] = [source.strip("\n") for source in body.split("\n---\n")]
    return found


class _Rename(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:  # ast's own naming
        node.id = self.names.get(node.id, node.id)
        return node


def renamed(source: str, rng: random.Random) -> str:
    """Return the program with some of its local variables called otherwise; parameters keep their names."""
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    kept = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    chosen: dict[str, str] = {}
    for name in sorted(names - kept):
        other = rng.choice(_OTHER_NAMES.get(name, (name,)))
        if rng.random() < 0.5 and other not in names | kept | set(chosen.values()):
            chosen[name] = other
    if not chosen:
        return source
    text = ast.unparse(_Rename(chosen).visit(tree))
    return text.replace("\n\n\ndef", "\n\ndef")
